#include "device/cpu/code.hh"

#include <cstring>

#include "base/log.hh"
#include "device/cpu/machine.hh"
#include "ptx/text/fatbin.hh"

namespace outboard::device::cpu {
namespace {

// A linked image is a fatbin whose entries carry this flag: not alternatives to choose from, but parts to
// link. Bits this high are not used by nvcc.
constexpr std::uint64_t linked_flag = std::uint64_t{1} << 62;

/// Entry header of the container (64 bytes); fields as nvcc writes them.
struct entry_header {
  std::uint16_t kind = 1, constant = 0x0101;
  std::uint32_t header_size = 64;
  std::uint64_t payload_size = 0;
  std::uint32_t compressed_size = 0, options_offset = 0;
  std::uint16_t version_minor = 0, version_major = 9;
  std::uint32_t capability = 75, name_offset = 0, name_size = 0;
  std::uint64_t flags = 0x11 | linked_flag, zero = 0, unpacked_size = 0;
};
static_assert(sizeof(entry_header) == 64);

struct container_header {
  std::uint32_t magic = ptx::fatbin_magic;
  std::uint16_t version = 1, header_size = 16;
  std::uint64_t size = 0;
};
static_assert(sizeof(container_header) == 16);

template <class T>
void append(std::vector<std::byte>& to, const T& value) {
  const auto* bytes = reinterpret_cast<const std::byte*>(&value);
  to.insert(to.end(), bytes, bytes + sizeof value);
}

CUresult code_of_refusal(const error& e) {
  return e.next == action::fall_back ? CUDA_ERROR_UNSUPPORTED_PTX_VERSION : CUDA_ERROR_INVALID_PTX;
}

CUresult parse_all(const std::vector<std::string>& texts, jit_options& options, ptx::module_ptr& out) {
  std::vector<ptx::module_ptr> parts;
  for (const std::string& text : texts) {
    auto parsed = ptx::parse(text);
    if (!parsed) return options.write_error(parsed.error().message), code_of_refusal(parsed.error());
    parts.push_back(std::move(*parsed));
  }
  if (parts.size() == 1) return out = parts.front(), CUDA_SUCCESS;
  auto linked = ptx::link(parts);
  if (!linked) return options.write_error(linked.error().message), CUDA_ERROR_INVALID_PTX;
  return out = std::move(*linked), CUDA_SUCCESS;
}

CUresult no_text(const error& e, jit_options& options) {
  options.write_error(e.message);
  return e.next == action::fall_back ? CUDA_ERROR_NO_BINARY_FOR_GPU : CUDA_ERROR_INVALID_IMAGE;
}

/// The texts of one fatbin or PTX text that are to be loaded together.
CUresult image_texts(std::span<const std::byte> image, jit_options& options, std::vector<std::string>& out) {
  std::uint32_t magic = 0;
  if (image.size() >= sizeof magic) std::memcpy(&magic, image.data(), sizeof magic);
  if (magic == ptx::fatbin_magic) {
    auto entries = ptx::fatbin_entries(image);
    if (!entries) return no_text(entries.error(), options);
    if (!entries->empty() && (entries->front().flags & linked_flag) != 0) {
      for (const ptx::fatbin_entry& entry : *entries) {
        auto text = ptx::entry_text(entry);
        if (!text) return no_text(text.error(), options);
        out.push_back(std::move(*text));
      }
      return CUDA_SUCCESS;
    }
  }
  auto text = ptx::image_ptx(image, static_cast<std::uint32_t>(here().facts.capability));
  if (!text) return no_text(text.error(), options);
  out.push_back(std::move(*text));
  return CUDA_SUCCESS;
}

bool is_elf(const void* image) { return std::memcmp(image, "\177ELF", 4) == 0; }

}  // namespace

jit_options::jit_options(unsigned count, const CUjit_option* options, void** values) {
  for (unsigned i = 0; i < count && options != nullptr && values != nullptr; ++i) {
    if (options[i] == CU_JIT_ERROR_LOG_BUFFER) error_buffer_ = static_cast<char*>(values[i]);
    if (options[i] == CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES) error_size_ = &values[i];
    // Nothing is ever written to the information log: say so.
    if (options[i] == CU_JIT_INFO_LOG_BUFFER_SIZE_BYTES) info_size_ = &values[i];
    if (options[i] == CU_JIT_INFO_LOG_BUFFER) info_buffer_ = static_cast<char*>(values[i]);
    if (options[i] == CU_JIT_TARGET_FROM_CUCONTEXT) target_of_context_ = true;
    if (options[i] != CU_JIT_TARGET) continue;
    has_target_ = true;
    target_ = static_cast<unsigned>(reinterpret_cast<std::uintptr_t>(values[i]));
  }
  if (info_size_ != nullptr && info_buffer_ != nullptr && reinterpret_cast<std::size_t>(*info_size_) > 0) {
    *info_buffer_ = 0;
    *info_size_ = nullptr;
  }
}

CUresult jit_options::refusal() const {
  if (!has_target_) return CUDA_SUCCESS;
  if (target_of_context_) return CUDA_ERROR_INVALID_SOURCE;  // both cannot be
  // Architecture- and family-specific targets have bits of their own above the number.
  return ptx::is_target(static_cast<int>(target_ & 0xffff)) ? CUDA_SUCCESS : CUDA_ERROR_INVALID_IMAGE;
}

void jit_options::write_error(const std::string& text) {
  log::line(log::level::debug, "cpu device: ", text);
  if (error_buffer_ == nullptr || error_size_ == nullptr) return;
  const auto room = reinterpret_cast<std::size_t>(*error_size_);
  if (room == 0) return;
  const std::size_t written = std::min(room - 1, text.size());
  std::memcpy(error_buffer_, text.data(), written);
  error_buffer_[written] = 0;
  *error_size_ = reinterpret_cast<void*>(written);
}

CUresult load_image(const void* image, jit_options& options, ptx::module_ptr& out) {
  if (image == nullptr) return CUDA_ERROR_INVALID_VALUE;
  if (const CUresult r = options.refusal(); r != CUDA_SUCCESS) return r;
  std::uint32_t magic = 0;
  std::memcpy(&magic, image, sizeof magic);
  std::vector<std::string> texts;
  if (magic == ptx::wrapper_magic) {
    auto fatbins = ptx::wrapper_fatbins(image);
    if (!fatbins) return no_text(fatbins.error(), options);
    for (const auto& fatbin : *fatbins) {
      if (const CUresult r = image_texts(fatbin, options, texts); r != CUDA_SUCCESS) return r;
    }
    return parse_all(texts, options, out);
  }
  if (is_elf(image)) return options.write_error("machine code only, no PTX"), CUDA_ERROR_NO_BINARY_FOR_GPU;
  auto size = ptx::image_size(image);
  if (!size) return options.write_error(size.error().message), CUDA_ERROR_INVALID_IMAGE;
  const std::span<const std::byte> bytes{static_cast<const std::byte*>(image), *size};
  if (const CUresult r = image_texts(bytes, options, texts); r != CUDA_SUCCESS) return r;
  return parse_all(texts, options, out);
}

std::vector<std::byte> pack_texts(const std::vector<std::string>& texts) {
  std::vector<std::byte> image;
  append(image, container_header{});
  for (const std::string& text : texts) {
    entry_header entry;
    entry.payload_size = (text.size() + 1 + 7) / 8 * 8;
    append(image, entry);
    const std::size_t start = image.size();
    image.resize(start + entry.payload_size);
    std::memcpy(image.data() + start, text.data(), text.size());
  }
  container_header header;
  header.size = image.size() - sizeof header;
  std::memcpy(image.data(), &header, sizeof header);
  return image;
}

CUresult instance::make(const ptx::module_ptr& source, memory& store, instance_ptr& out, std::string& why) {
  auto made = std::make_shared<instance>(store);
  CUresult failed = CUDA_ERROR_INVALID_PTX;
  auto loaded = ptx::instantiate(source, [&](const ptx::variable_info& v) -> result<void*> {
    const memory_kind kind = v.managed ? memory_kind::managed : memory_kind::device;
    std::uint64_t address = 0;
    if (store.allocate(v.size, v.align, kind, 0, 0, address) != CUDA_SUCCESS) {
      failed = CUDA_ERROR_OUT_OF_MEMORY;
      return failure("no device memory for the " + std::to_string(v.size) + " bytes of " + v.name);
    }
    made->blocks_.push_back(address);
    return reinterpret_cast<void*>(address);
  });
  if (!loaded) return why = loaded.error().message, failed;
  made->code_ = std::move(*loaded);
  out = std::move(made);
  return CUDA_SUCCESS;
}

instance::~instance() {
  code_.reset();
  for (const std::uint64_t block : blocks_) CHECK(store_.release(block) == CUDA_SUCCESS);
}

CUresult library_object::in_context(const context_ptr& c, instance_ptr& out) {
  std::lock_guard lock(mutex);
  instance_ptr& own = instances[c->id];
  if (own == nullptr) {
    std::string why;
    if (const CUresult r = instance::make(source, *here().store, own, why); r != CUDA_SUCCESS) {
      here().how.tell("cpu device: " + why);
      return r;
    }
  }
  out = own;
  return CUDA_SUCCESS;
}

}  // namespace outboard::device::cpu
