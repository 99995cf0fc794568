// The sixth purpose of a hello: a program's OpenCL session. A worker takes the connection over as it does for
// CUDA, but loads the platforms of its host instead of a CUDA driver. Constants.
#pragma once

#include "wire/hello.hh"

namespace outboard::wire {

inline constexpr purpose purpose_opencl{6};

/// True if a worker of its own takes the connection over.
inline constexpr bool opens_session(purpose wanted) {
  return wanted == purpose::session || wanted == purpose_opencl;
}

}  // namespace outboard::wire
