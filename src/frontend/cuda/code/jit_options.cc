#include "frontend/cuda/code/jit_options.hh"

#include <algorithm>
#include <cstring>

namespace outboard::frontend::cuda {
namespace {

bool carries_pointers(CUjit_option option) {
  switch (option) {
    case CU_JIT_GLOBAL_SYMBOL_NAMES:
    case CU_JIT_GLOBAL_SYMBOL_ADDRESSES:
    case CU_JIT_REFERENCED_KERNEL_NAMES:
    case CU_JIT_REFERENCED_VARIABLE_NAMES:
      return true;
    default:
      return false;
  }
}

bool is_output(std::int32_t option) {
  return option == CU_JIT_THREADS_PER_BLOCK || option == CU_JIT_WALL_TIME ||
         option == CU_JIT_INFO_LOG_BUFFER_SIZE_BYTES || option == CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES;
}

/// The low half of an option's slot: most options are an unsigned int in a void*.
std::uint64_t small_value(const void* slot) {
  return static_cast<std::uint32_t>(reinterpret_cast<std::uintptr_t>(slot));
}

}  // namespace

void jit_options::log_buffer::fill(std::string_view text) const {
  if (!to || size == 0) return;
  const std::size_t n = std::min<std::size_t>(text.size(), size - 1);
  std::memcpy(to, text.data(), n);
  to[n] = '\0';
}

CUresult jit_options::take(unsigned count, const CUjit_option* options, void** values) {
  if (count == 0) return CUDA_SUCCESS;
  if (!options || !values || count > marshal::max_jit_options) return CUDA_ERROR_INVALID_VALUE;
  // What the driver does not know it refuses; what only a newer one knows may be a pointer.
  for (const CUjit_option option : std::span(options, count)) {
    if (option < 0 || option >= CU_JIT_NUM_OPTIONS) return CUDA_ERROR_INVALID_VALUE;
  }
  values_ = values;
  for (unsigned i = 0; i < count; ++i) {
    switch (options[i]) {
      case CU_JIT_INFO_LOG_BUFFER:
        info_.to = static_cast<char*>(values[i]);
        break;
      case CU_JIT_INFO_LOG_BUFFER_SIZE_BYTES:
        info_.size = small_value(values[i]);
        break;
      case CU_JIT_ERROR_LOG_BUFFER:
        error_.to = static_cast<char*>(values[i]);
        break;
      case CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES:
        error_.size = small_value(values[i]);
        break;
      default:
        break;
    }
  }
  for (unsigned i = 0; i < count; ++i) {
    marshal::jit_option o;
    o.option = static_cast<std::int32_t>(options[i]);
    o.value = small_value(values[i]);
    if (carries_pointers(options[i])) return CUDA_ERROR_NOT_SUPPORTED;
    if (options[i] == CU_JIT_INFO_LOG_BUFFER) o.value = info_.to ? info_.size : 0;
    if (options[i] == CU_JIT_ERROR_LOG_BUFFER) o.value = error_.to ? error_.size : 0;
    if (options[i] == CU_JIT_INFO_LOG_BUFFER_SIZE_BYTES || options[i] == CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES ||
        options[i] == CU_JIT_INFO_LOG_BUFFER || options[i] == CU_JIT_ERROR_LOG_BUFFER) {
      o.value = std::min(o.value, marshal::max_jit_log);
    }
    travelling_.push_back(o);
  }
  return CUDA_SUCCESS;
}

void jit_options::deliver(const marshal::jit_results& results) const {
  if (results.values.size() != travelling_.size()) return;
  info_.fill(results.info_log);
  error_.fill(results.error_log);
  for (std::size_t i = 0; i < travelling_.size(); ++i) {
    if (is_output(travelling_[i].option)) values_[i] = reinterpret_cast<void*>(results.values[i]);
  }
}

}  // namespace outboard::frontend::cuda
