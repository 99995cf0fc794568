// A call of one of the device's entries, which may be absent.
#pragma once

#include <type_traits>

#include "api/cuda/headers.hh"

namespace outboard::backend {

/// CUDA_ERROR_NOT_SUPPORTED where the device has no such entry.
template <class... A>
CUresult call_driver(CUresult (*entry)(A...), std::type_identity_t<A>... arguments) {
  return entry ? entry(arguments...) : CUDA_ERROR_NOT_SUPPORTED;
}

}  // namespace outboard::backend
