#include "ptx/text/fatbin.hh"

#include <lz4.h>
#include <zstd.h>

#include <algorithm>
#include <cstring>
#include <memory>

namespace outboard::ptx {
namespace {

constexpr std::uint64_t flag_lz4 = 0x2000, flag_zstd = 0x8000, flag_arch = 0x100000, flag_family = 0x200000;
constexpr std::size_t header_bytes = 16, entry_bytes = 64;
// nvcc writes one or two entries for each architecture it knows; cuBLAS has below 100 in one fatbin.
constexpr std::size_t max_entries = 4096;

template <class T>
T load(std::span<const std::byte> bytes, std::size_t offset) {
  T value;
  std::memcpy(&value, bytes.data() + offset, sizeof value);
  return value;
}

entry_kind kind_of(std::uint16_t number) {
  switch (number) {
    case 1:
      return entry_kind::ptx;
    case 2:
      return entry_kind::elf;
    case 8:
      return entry_kind::lto;
    default:
      return entry_kind::other;
  }
}

/// Reads the entry at `at` of `body` and moves `at` behind it.
result<fatbin_entry> read_entry(std::span<const std::byte> body, std::size_t& at) {
  const auto here = body.subspan(at);
  const std::string where = "fatbin entry at offset " + std::to_string(at);
  if (here.size() < entry_bytes) return failure(where + ": truncated header");
  const auto header = load<std::uint32_t>(here, 4);
  const auto padded = load<std::uint64_t>(here, 8);
  const auto packed = load<std::uint32_t>(here, 16);
  if (header < entry_bytes || header > here.size()) {
    return failure(where + ": header size " + std::to_string(header) + " is outside 64.." +
                   std::to_string(here.size()));
  }
  if (padded > here.size() - header) {
    return failure(where + ": payload of " + std::to_string(padded) + " bytes, " +
                   std::to_string(here.size() - header) + " are left");
  }
  fatbin_entry entry;
  entry.kind = kind_of(load<std::uint16_t>(here, 0));
  entry.version_minor = load<std::uint16_t>(here, 24);
  entry.version_major = load<std::uint16_t>(here, 26);
  entry.capability = load<std::uint32_t>(here, 28);
  entry.flags = load<std::uint64_t>(here, 40);
  entry.arch_specific = (entry.flags & flag_arch) != 0;
  entry.family_specific = (entry.flags & flag_family) != 0;
  if (entry.flags & flag_zstd) {
    entry.packed = compression::zstd;
  } else if (entry.flags & flag_lz4) {
    entry.packed = compression::lz4;
  }
  std::uint64_t used = padded;
  if (entry.packed != compression::none) {
    if (packed > padded) {
      return failure(where + ": compressed size " + std::to_string(packed) + " exceeds the payload of " +
                     std::to_string(padded));
    }
    used = packed;
    entry.unpacked_size = load<std::uint64_t>(here, 56);
  } else {
    entry.unpacked_size = padded;
  }
  entry.payload = here.subspan(header, used);
  at += header + padded;
  return entry;
}

std::string without_padding(std::string text) {
  if (const auto nul = text.find('\0'); nul != std::string::npos) text.resize(nul);
  return text;
}

result<std::string> unpack(const fatbin_entry& entry) {
  const auto packed = entry.payload;
  if (entry.unpacked_size > max_ptx_bytes) {
    return failure("fatbin entry unpacks to " + std::to_string(entry.unpacked_size) +
                   " bytes, the limit is " + std::to_string(max_ptx_bytes));
  }
  // A hostile size must not cost more memory than the packed bytes can justify. The best ratio of an LZ4
  // block is 255; zstd has none, so it is unpacked as a stream.
  std::string text;
  if (entry.packed == compression::lz4) {
    if (entry.unpacked_size > packed.size() * 256 + 64)
      return failure("fatbin entry: LZ4 size is impossible");
    text.resize(entry.unpacked_size);
    const int got = LZ4_decompress_safe(reinterpret_cast<const char*>(packed.data()), text.data(),
                                        static_cast<int>(packed.size()), static_cast<int>(text.size()));
    if (got < 0 || static_cast<std::size_t>(got) != text.size())
      return failure("fatbin entry: LZ4 data is damaged");
    return text;
  }
  struct closer {
    void operator()(ZSTD_DStream* s) const { ZSTD_freeDStream(s); }
  };
  const std::unique_ptr<ZSTD_DStream, closer> stream(ZSTD_createDStream());
  if (!stream) return failure("out of memory");
  ZSTD_DCtx_setParameter(stream.get(), ZSTD_d_windowLogMax, 28);
  ZSTD_inBuffer in{packed.data(), packed.size(), 0};
  while (true) {
    const std::size_t have = text.size();
    if (have >= entry.unpacked_size + 1) return failure("fatbin entry: zstd data is longer than it says");
    text.resize(std::min<std::size_t>(entry.unpacked_size + 1, have + (1u << 20)));
    ZSTD_outBuffer out{text.data() + have, text.size() - have, 0};
    const std::size_t left = ZSTD_decompressStream(stream.get(), &out, &in);
    text.resize(have + out.pos);
    if (ZSTD_isError(left)) return failure(std::string("fatbin entry: zstd: ") + ZSTD_getErrorName(left));
    if (left == 0) break;
    if (out.pos == 0 && in.pos == in.size) return failure("fatbin entry: zstd data is truncated");
  }
  if (text.size() != entry.unpacked_size)
    return failure("fatbin entry: zstd data has another size than it says");
  return text;
}

bool looks_like_ptx(std::string_view text) {
  // Comments may come first; what every PTX text has is a .version directive.
  return text.find(".version") != std::string_view::npos;
}

}  // namespace

result<std::vector<fatbin_entry>> fatbin_entries(std::span<const std::byte> fatbin) {
  std::vector<fatbin_entry> entries;
  std::size_t start = 0;
  while (start < fatbin.size()) {
    const auto here = fatbin.subspan(start);
    const bool first = start == 0;
    if (here.size() < header_bytes || load<std::uint32_t>(here, 0) != fatbin_magic) {
      if (first) return failure("no fatbin: the magic number 0xba55ed50 is missing");
      break;  // padding behind the last one
    }
    const auto version = load<std::uint16_t>(here, 4);
    const auto header = load<std::uint16_t>(here, 6);
    const auto size = load<std::uint64_t>(here, 8);
    if (version != 1) return failure("fatbin version " + std::to_string(version) + " is not known");
    if (header < header_bytes || header > here.size() || size > here.size() - header) {
      return failure("fatbin of " + std::to_string(size) + " bytes in " + std::to_string(here.size()));
    }
    const auto body = here.subspan(header, size);
    for (std::size_t at = 0; at < body.size();) {
      auto entry = read_entry(body, at);
      if (!entry) return std::move(entry).error();
      if (entries.size() == max_entries) return failure("fatbin has more than 4096 entries");
      entries.push_back(*std::move(entry));
    }
    start += (header + size + 7) & ~std::uint64_t{7};
  }
  return entries;
}

result<std::string> entry_text(const fatbin_entry& entry) {
  if (entry.kind != entry_kind::ptx) return failure("the fatbin entry is not PTX");
  if (entry.packed != compression::none) {
    auto text = unpack(entry);
    if (!text) return std::move(text).error();
    return without_padding(*std::move(text));
  }
  if (entry.payload.size() > max_ptx_bytes) return failure("PTX of more than 256 MiB");
  return without_padding(
      std::string(reinterpret_cast<const char*>(entry.payload.data()), entry.payload.size()));
}

int choose_ptx(std::span<const fatbin_entry> entries, std::uint32_t capability) {
  int best = -1;
  const auto better = [&](const fatbin_entry& a, const fatbin_entry& b) {
    const bool a_fits = a.capability <= capability, b_fits = b.capability <= capability;
    if (a_fits != b_fits) return a_fits;
    if (a.capability != b.capability) return (a.capability > b.capability) == a_fits;
    return a.arch_specific + a.family_specific < b.arch_specific + b.family_specific;
  };
  for (std::size_t n = 0; n < entries.size(); ++n) {
    if (entries[n].kind != entry_kind::ptx) continue;
    if (best < 0 || better(entries[n], entries[static_cast<std::size_t>(best)])) best = static_cast<int>(n);
  }
  return best;
}

result<std::string> image_ptx(std::span<const std::byte> image, std::uint32_t capability) {
  const error no_ptx{action::fall_back,
                     "the image holds machine code only, no PTX; compile it with PTX (-arch=compute_75)"};
  if (image.size() >= 4 && load<std::uint32_t>(image, 0) == fatbin_magic) {
    const auto entries = fatbin_entries(image);
    if (!entries) return entries.error();
    const int chosen = choose_ptx(*entries, capability);
    if (chosen < 0) return no_ptx;
    return entry_text((*entries)[static_cast<std::size_t>(chosen)]);
  }
  if (image.size() >= 4 && std::memcmp(image.data(),
                                       "\x7f"
                                       "ELF",
                                       4) == 0) {
    return no_ptx;
  }
  if (image.size() > max_ptx_bytes) return failure("PTX of more than 256 MiB");
  auto text = without_padding(std::string(reinterpret_cast<const char*>(image.data()), image.size()));
  if (!looks_like_ptx(text)) return failure("the image is neither a fatbin nor an ELF file nor PTX text");
  return text;
}

result<std::vector<std::span<const std::byte>>> wrapper_fatbins(const void* wrapper) {
  struct layout {
    std::uint32_t magic, version;
    const void* data;
    const void* more;
  } head;
  std::memcpy(&head, wrapper, sizeof head);
  if (head.magic != wrapper_magic)
    return failure("no fatbin wrapper: the magic number 0x466243b1 is missing");
  std::vector<std::span<const std::byte>> found;
  const auto add = [&](const void* fatbin) -> status {
    if (!fatbin) return failure("the fatbin wrapper holds a null pointer");
    const auto size = image_size(fatbin);
    if (!size) return size.error();
    found.emplace_back(static_cast<const std::byte*>(fatbin), *size);
    return {};
  };
  if (head.version == 2 && head.more) {
    const auto* list = static_cast<const void* const*>(head.more);
    for (; *list; ++list) OUTBOARD_TRY(add(*list));
  }
  if (found.empty()) OUTBOARD_TRY(add(head.data));
  return found;
}

result<std::size_t> image_size(const void* image) {
  std::uint32_t magic;
  const auto* text = static_cast<const char*>(image);
  if (static_cast<unsigned char>(text[0]) == (fatbin_magic & 0xff)) {
    std::memcpy(&magic, image, sizeof magic);
    if (magic == fatbin_magic) {
      std::uint16_t header;
      std::uint64_t size;
      std::memcpy(&header, text + 6, sizeof header);
      std::memcpy(&size, text + 8, sizeof size);
      if (size > std::uint64_t{1} << 40) return failure("fatbin of " + std::to_string(size) + " bytes");
      return static_cast<std::size_t>(header + size);
    }
  }
  // Text starts with white space, a comment or a directive.
  if (text[0] == '\n' || text[0] == '/' || text[0] == '.' || text[0] == ' ' || text[0] == '\t' ||
      text[0] == '\r') {
    return std::strlen(text) + 1;
  }
  return error{action::fall_back, "the image is neither a fatbin nor PTX text"};
}

}  // namespace outboard::ptx
