#include "marshal/cuda/image.hh"

#include <cstring>
#include <string_view>

#include "marshal/cuda/image_fatbin.hh"
#include "wire/cursor.hh"

namespace outboard::marshal {
namespace {

// u8 kind, u8 linked, u16 0, u32 count of parts, u64 size of each; then the parts, each from a multiple of 16
// on.
constexpr std::size_t alignment = 16;
static_assert(alignment <= __STDCPP_DEFAULT_NEW_ALIGNMENT__ || sizeof(void*) == 4,
              "the buffer itself is aligned by operator new; a client of 32 bits has no images");

constexpr std::uint64_t padded(std::uint64_t n) { return (n + alignment - 1) / alignment * alignment; }

enum class family { fatbin, wrapper, elf, bitcode, lto, text };

/// By the first bytes, never reading further than they match: a text may be shorter than four bytes.
family family_of(std::span<const std::byte> bytes) {
  const auto starts_with = [&](std::string_view magic) {
    for (std::size_t n = 0; n < magic.size(); ++n)
      if (n >= bytes.size() || bytes[n] != static_cast<std::byte>(magic[n])) return false;
    return true;
  };
  if (starts_with("\x50\xed\x55\xba")) return family::fatbin;
  if (starts_with("\xb1\x43\x62\x46")) return family::wrapper;
  if (starts_with("\x7f"
                  "ELF"))
    return family::elf;
  if (starts_with("BC\xc0\xde") || starts_with("\xde\xc0\x17\x0b")) return family::bitcode;
  if (starts_with("\xed\x43\x4e\x7f")) return family::lto;
  return family::text;
}

/// `bytes` may reach further than the memory that is there: nothing behind a stated size is read.
result<image_view> bare_extent(std::span<const std::byte> bytes) {
  switch (family_of(bytes)) {
    case family::fatbin: {
      const auto size = fatbin_extent(bytes);
      if (!size) return size.error();
      return image_view{image_kind::fatbin, false, {bytes.first(static_cast<std::size_t>(*size))}};
    }
    case family::elf: {
      const auto size = cubin_extent(bytes);
      if (!size) return size.error();
      return image_view{image_kind::elf, false, {bytes.first(static_cast<std::size_t>(*size))}};
    }
    case family::bitcode:
      return error{action::fall_back, "the image is NVVM bitcode; compile it to PTX or a cubin first"};
    case family::lto:
      return error{action::fall_back, "the image is LTO-IR; link it with nvJitLink first"};
    case family::wrapper:
      return failure("a fatbin wrapper is only understood by its address");
    case family::text:
      break;
  }
  const auto* const text = reinterpret_cast<const char*>(bytes.data());
  const std::size_t length = strnlen(text, bytes.size());
  if (length == bytes.size())
    return failure("the image is neither a fatbin nor an ELF file nor text that ends with NUL");
  // Comments may come first, but every PTX text has this directive.
  if (std::string_view(text, length).find(".version") == std::string_view::npos)
    return failure("the image is neither a fatbin nor an ELF file nor PTX text");
  return image_view{image_kind::ptx, false, {bytes.first(length + 1)}};
}

std::span<const std::byte> memory_at(const void* start) {
  return {static_cast<const std::byte*>(start), static_cast<std::size_t>(max_image_bytes)};
}

result<image_view> wrapped_extent(const void* image) {
  struct layout {
    std::uint32_t magic, version;
    const void* data;
    const void* const* more;
  } head;
  std::memcpy(&head, image, sizeof head);
  if (head.version != 1 && head.version != 2)
    return failure("fatbin wrapper of version " + std::to_string(head.version) + ", 1 and 2 are known");
  if (!head.data) return failure("the fatbin wrapper leads nowhere");
  auto view = bare_extent(memory_at(head.data));
  if (!view || head.version == 1 || !head.more) return view;
  if (view->kind != image_kind::fatbin)
    return failure("the linked image of a version 2 wrapper is no fatbin");
  for (const void* const* next = head.more; *next; ++next) {
    if (view->parts.size() > max_image_parts) return failure("fatbin wrapper with more than 65536 objects");
    const auto object = memory_at(*next);
    const auto size = fatbin_extent(object);
    if (!size) return size.error();
    view->parts.push_back(object.first(static_cast<std::size_t>(*size)));
    view->linked = true;
  }
  return view;
}

/// A loader follows the sizes inside a fatbin and inside its plain cubins.
status check_part(image_kind kind, std::span<const std::byte> part) {
  if (kind == image_kind::fatbin) {
    const auto entries = fatbin_entries(part);
    if (!entries) return entries.error();
    if (*fatbin_extent(part) != part.size()) return failure("bytes behind the end of a fatbin");
    for (const fatbin_entry& entry : *entries) {
      if (entry.kind != entry_kind::cubin || entry.packing != entry_packing::none) continue;
      if (const auto size = cubin_extent(entry.payload); !size) return size.error();
    }
    return {};
  }
  if (kind == image_kind::elf) {
    const auto size = cubin_extent(part);
    return size ? status() : size.error();
  }
  if (part.empty() || part.back() != std::byte{0}) return failure("PTX text without NUL at its end");
  return {};
}

}  // namespace

std::uint64_t image_view::size() const {
  std::uint64_t all = 0;
  for (const auto& part : parts) all += part.size();
  return all;
}

result<image_view> image_extent(const void* image) {
  if (!image) return failure("the image is a null pointer");
  auto view =
      family_of(memory_at(image)) == family::wrapper ? wrapped_extent(image) : bare_extent(memory_at(image));
  if (view && view->size() > max_image_bytes)
    return failure("image of " + std::to_string(view->size()) + " bytes, the limit is " +
                   std::to_string(max_image_bytes));
  return view;
}

result<image_view> image_extent(std::span<const std::byte> bytes) {
  if (bytes.size() > max_image_bytes)
    return failure("image of " + std::to_string(bytes.size()) + " bytes, the limit is " +
                   std::to_string(max_image_bytes));
  return bare_extent(bytes);
}

module_image module_image::pack(const image_view& view, bool reduced) {
  module_image image;
  image.kind_ = view.kind;
  image.linked_ = view.linked;
  image.reduced_ = reduced;
  std::uint64_t all = 0;
  for (const auto part : view.parts) all += padded(part.size());
  image.bytes_.reserve(static_cast<std::size_t>(padded(8 + 8 * view.parts.size()) + all));
  wire::writer to(image.bytes_);
  to.put(static_cast<std::uint8_t>(view.kind));
  to.put(view.linked);
  to.put(std::uint16_t{0});
  to.put(static_cast<std::uint32_t>(view.parts.size()));
  for (const auto part : view.parts) to.put<std::uint64_t>(part.size());
  for (const auto part : view.parts) {
    image.bytes_.resize(static_cast<std::size_t>(padded(to.size())));
    image.places_.push_back({to.size(), part.size()});
    to.bytes(part);
  }
  return image;
}

result<module_image> module_image::decode(std::span<const std::byte> bytes) {
  if (bytes.size() > max_encoded_image_bytes) return failure("module image above 4 GiB");
  wire::reader from(bytes);
  const auto kind = from.get<std::uint8_t>();
  const bool linked = from.flag();
  const auto zero = from.get<std::uint16_t>();
  const auto count = from.get<std::uint32_t>();
  if (!from.ok() || kind < 1 || kind > 3 || zero != 0 || count == 0 || count > max_image_parts + 1)
    return failure("module image with a damaged head");
  if (linked ? kind != static_cast<std::uint8_t>(image_kind::fatbin) : count != 1)
    return failure("module image with " + std::to_string(count) + " parts");
  const auto sizes = from.array<std::uint64_t>(count);
  if (!from.ok()) return failure("module image: cut off");

  module_image image;
  image.kind_ = static_cast<image_kind>(kind);
  image.linked_ = linked;
  std::size_t at = 8 + sizes.size();
  for (std::uint32_t n = 0; n < count; ++n) {
    const auto size = load<std::uint64_t>(sizes, 8ull * n);
    const auto padding = from.bytes(padded(at) - at);
    const auto part = from.bytes(size);
    if (!from.ok()) return failure("module image: part of " + std::to_string(size) + " bytes is cut off");
    for (const std::byte b : padding)
      if (b != std::byte{0}) return failure("module image: something between its parts");
    OUTBOARD_TRY(check_part(image.kind_, part));
    image.places_.push_back({static_cast<std::size_t>(padded(at)), part.size()});
    at = static_cast<std::size_t>(padded(at)) + part.size();
  }
  if (!from.finished()) return failure("module image: something behind its end");
  image.bytes_.assign(bytes.begin(), bytes.end());
  return image;
}

image_view module_image::view() const {
  image_view view{kind_, linked_, {}};
  for (const part_place& p : places_) view.parts.push_back(std::span(bytes_).subspan(p.offset, p.size));
  return view;
}

const void* module_image::load_pointer() {
  const auto at = [&](std::size_t n) -> const void* { return bytes_.data() + places_[n].offset; };
  if (kind_ != image_kind::fatbin) return at(0);
  more_.clear();
  for (std::size_t n = 1; n < places_.size(); ++n) more_.push_back(at(n));
  more_.push_back(nullptr);
  wrapper_ = {fatbin_wrapper_magic, linked_ ? 2u : 1u, at(0), linked_ ? more_.data() : nullptr};
  return &wrapper_;
}

}  // namespace outboard::marshal
