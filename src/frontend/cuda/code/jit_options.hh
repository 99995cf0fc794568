// Options of the JIT and the linker as a program gives them: what travels, and where logs and output values
// go when the reply is there. Values; the program's arrays and buffers must outlive deliver().
#pragma once

#include <span>
#include <vector>

#include "api/cuda/headers.hh"
#include "marshal/cuda/bodies.hh"

namespace outboard::frontend::cuda {

class jit_options {
 public:
  /// CUDA_SUCCESS; CUDA_ERROR_INVALID_VALUE: an array is missing; CUDA_ERROR_NOT_SUPPORTED: an option that
  /// carries pointers.
  CUresult take(unsigned count, const CUjit_option* options, void** values);

  const std::vector<marshal::jit_option>& travelling() const { return travelling_; }

  /// Fills the program's log buffers and the values that are outputs. Results of another length write
  /// nothing.
  void deliver(const marshal::jit_results& results) const;

 private:
  struct log_buffer {
    char* to = nullptr;
    std::uint64_t size = 0;
    void fill(std::string_view text) const;
  };

  std::vector<marshal::jit_option> travelling_;
  void** values_ = nullptr;
  log_buffer info_, error_;
};

}  // namespace outboard::frontend::cuda
