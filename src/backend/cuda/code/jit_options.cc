#include "backend/cuda/code/jit_options.hh"

#include <cstring>

namespace outboard::backend {
namespace {

/// An option whose value we do not know could be a pointer.
bool plain_value(std::int32_t option) {
  if (option < 0 || option >= CU_JIT_NUM_OPTIONS) return false;
  switch (static_cast<CUjit_option>(option)) {
    case CU_JIT_GLOBAL_SYMBOL_NAMES:
    case CU_JIT_GLOBAL_SYMBOL_ADDRESSES:
    case CU_JIT_REFERENCED_KERNEL_NAMES:
    case CU_JIT_REFERENCED_VARIABLE_NAMES:
      return false;
    default:
      return true;
  }
}

std::string text_in(const std::vector<char>& buffer) {
  return buffer.empty() ? std::string() : std::string(buffer.data(), strnlen(buffer.data(), buffer.size()));
}

void* log_room(std::vector<char>& buffer, std::uint64_t size) {
  buffer.assign(static_cast<std::size_t>(size), '\0');
  return buffer.empty() ? nullptr : buffer.data();
}

}  // namespace

bool jit_arguments::take(std::span<const marshal::jit_option> options) {
  if (options.size() > marshal::max_jit_options) return false;
  // The buffers hold what the size options say, whatever the buffer options claim.
  std::uint64_t info = 0, error = 0;
  for (const marshal::jit_option& o : options) {
    if (!plain_value(o.option)) return false;
    if (o.option == CU_JIT_INFO_LOG_BUFFER_SIZE_BYTES) info = o.value;
    if (o.option == CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES) error = o.value;
  }
  if (info > marshal::max_jit_log || error > marshal::max_jit_log) return false;
  for (const marshal::jit_option& o : options) {
    options_.push_back(static_cast<CUjit_option>(o.option));
    if (o.option == CU_JIT_INFO_LOG_BUFFER) {
      values_.push_back(o.value ? log_room(info_, info) : nullptr);
    } else if (o.option == CU_JIT_ERROR_LOG_BUFFER) {
      values_.push_back(o.value ? log_room(error_, error) : nullptr);
    } else {
      values_.push_back(reinterpret_cast<void*>(o.value));
    }
  }
  return true;
}

marshal::jit_results jit_arguments::results() const {
  marshal::jit_results r;
  r.info_log = text_in(info_);
  r.error_log = text_in(error_);
  for (std::size_t i = 0; i < values_.size(); ++i) {
    // Where our buffers lie is nobody's business.
    const bool buffer = options_[i] == CU_JIT_INFO_LOG_BUFFER || options_[i] == CU_JIT_ERROR_LOG_BUFFER;
    r.values.push_back(buffer ? 0 : reinterpret_cast<std::uint64_t>(values_[i]));
  }
  return r;
}

}  // namespace outboard::backend
