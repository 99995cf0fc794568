// Options of the JIT and the linker as a peer sends them, made into what the driver takes: its arrays, with
// log buffers of our own. Must stay where it is while the driver holds the arrays (a link holds them to its
// end).
#pragma once

#include <span>
#include <string>
#include <vector>

#include "api/cuda/headers.hh"
#include "marshal/cuda/bodies.hh"

namespace outboard::backend {

class jit_arguments {
 public:
  jit_arguments() = default;
  jit_arguments(const jit_arguments&) = delete;
  jit_arguments& operator=(const jit_arguments&) = delete;

  /// False: the front-end would have refused these (too many, pointers, a log beyond the limit).
  [[nodiscard]] bool take(std::span<const marshal::jit_option> options);

  unsigned count() const { return static_cast<unsigned>(options_.size()); }
  CUjit_option* options() { return options_.empty() ? nullptr : options_.data(); }
  void** values() { return values_.empty() ? nullptr : values_.data(); }

  /// Logs and values as the driver has left them.
  marshal::jit_results results() const;

 private:
  std::vector<CUjit_option> options_;
  std::vector<void*> values_;
  std::vector<char> info_, error_;
};

}  // namespace outboard::backend
