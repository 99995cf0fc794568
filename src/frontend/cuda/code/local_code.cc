#include "frontend/cuda/code/local_code.hh"

#include <atomic>
#include <utility>

#include "base/log.hh"

namespace outboard::frontend::cuda {
namespace {

/// Bytes of images that wait for their first launch. A program that loads more than this and launches little
/// of it has them parsed at the load, which costs time instead of memory.
constexpr std::uint64_t most_waiting = 64u << 20;
std::atomic<std::uint64_t> waiting{0};

}  // namespace

local_code::local_code(marshal::module_image image, const marshal::image_target& target)
    : image_(std::move(image)), target_(target) {
  const std::uint64_t size = image_->encoded().size();
  const std::uint64_t others = waiting.fetch_add(size, std::memory_order_relaxed);
  counted_ = size;
  if (others + size > most_waiting) parse();
}

local_code::~local_code() { waiting.fetch_sub(counted_, std::memory_order_relaxed); }

/// With the lock, or before others know the object.
void local_code::parse() {
  auto table = marshal::parse_kernels(image_->view(), target_);
  if (table) {
    table_ = std::move(*table);
  } else {
    log::debug("an image whose kernels are not read here: ", table.error().message);
  }
  image_.reset();
  waiting.fetch_sub(std::exchange(counted_, 0), std::memory_order_relaxed);
}

const marshal::kernel_info* local_code::find_kernel(std::string_view name) {
  const std::lock_guard lock(mutex_);
  if (image_) parse();
  return table_.find_kernel(name);  // the table does not change any more
}

void link_inputs::add(CUjitInputType type, std::span<const std::byte> input,
                      const marshal::image_target& target) {
  const auto read = [&]() -> result<marshal::kernel_table> {
    const std::string_view text(reinterpret_cast<const char*>(input.data()), input.size());
    switch (type) {
      case CU_JIT_INPUT_PTX:
        return marshal::parse_ptx(text.substr(0, text.find('\0')));
      case CU_JIT_INPUT_CUBIN:
      case CU_JIT_INPUT_FATBINARY: {
        const auto view = marshal::image_extent(input);
        return view ? marshal::parse_kernels(*view, target) : view.error();
      }
      default:  // host objects, libraries, intermediate code
        return failure("not read here");
    }
  };
  auto table = read();
  if (!table || table->source == marshal::kernel_source::none) {
    all_read_ = false;
    return;
  }
  for (marshal::kernel_info& kernel : table->kernels) {
    if (!kernel.layout_known) all_read_ = false;
    std::string name = kernel.name;
    kernels_.try_emplace(std::move(name), std::move(kernel));
  }
}

bool link_inputs::agree(const marshal::kernel_table& linked) const {
  for (const marshal::kernel_info& kernel : linked.kernels) {
    if (!kernel.layout_known) continue;
    const auto known = kernels_.find(kernel.name);
    if (known == kernels_.end()) {
      if (all_read_) return false;
    } else if (known->second.layout_known && !same_layout(kernel, known->second)) {
      return false;
    }
  }
  return true;
}

bool same_layout(const marshal::kernel_info& one, const marshal::kernel_info& other) {
  return one.parameter_bytes == other.parameter_bytes && one.parameters == other.parameters;
}

std::uint32_t parameter_limit_of(const marshal::snapshot& facts, std::int32_t device) {
  constexpr std::int32_t since = 12010;  // CUDA 12.1, Volta
  const auto i = static_cast<std::size_t>(device);
  const bool large =
      facts.driver_version >= since && i < facts.devices.size() && facts.devices[i].compute_major >= 7;
  return large ? 32764 : 4096;
}

}  // namespace outboard::frontend::cuda
