// The first check of every hand-written end, by what the function's line in the tables says of it.
#pragma once

#include "frontend/process.hh"

namespace outboard::frontend::cuda {

/// CUDA_SUCCESS, or the driver's refusal: not initialised, no context, a dead or failed one.
template <api::opcode Op>
CUresult gate(const lane& own) {
  return process::instance().gate(api::function<Op>::about, own);
}

}  // namespace outboard::frontend::cuda
