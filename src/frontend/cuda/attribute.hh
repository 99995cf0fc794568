// Attributes that travel as the 64 bytes the driver has them in: of streams and of kernel nodes. Any thread.
#pragma once

#include <cstring>

#include "frontend/cuda/requests.hh"
#include "marshal/cuda/graph_bodies.hh"

namespace outboard::frontend::cuda {

/// Sets the attribute to `in`, or (null) asks for it into `out`. `about` says of what, and which.
template <class Value>
CUresult exchange_attribute(
    lane& own, opcode_for<marshal::attribute_body, marshal::perhaps<marshal::attribute_reply>> code,
    marshal::attribute_body about, Value* out, const Value* in) {
  static_assert(sizeof(Value) == sizeof about.value);
  about.set = in != nullptr;
  if (in) std::memcpy(about.value.data(), in, sizeof *in);
  typed_request r(code, own, about);
  if (in) return r.call();
  marshal::attribute_reply reply;
  const CUresult result = r.call(reply);
  if (result == CUDA_SUCCESS) std::memcpy(out, reply.value.data(), sizeof *out);
  return result;
}

}  // namespace outboard::frontend::cuda
