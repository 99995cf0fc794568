// Attributes that travel as the 64 bytes the driver has them in: of streams and of kernel nodes. Any thread.
#pragma once

#include <cstring>

#include "frontend/cuda/requests.hh"
#include "marshal/cuda/graph_bodies.hh"

namespace outboard::frontend::cuda {

/// Sets the attribute to `in`, or (null) asks for it into `out`. `about` says of what, and which.
template <class Value>
CUresult exchange_attribute(lane& own, api::opcode code, marshal::attribute_body about, Value* out,
                            const Value* in) {
  static_assert(sizeof(Value) == sizeof about.value);
  about.set = in != nullptr;
  if (in) std::memcpy(about.value.data(), in, sizeof *in);
  request r(code, own);
  marshal::put_body(r.body(), about);
  const CUresult result = r.call();
  if (result != CUDA_SUCCESS || in) return result;
  wire::reader from = r.reply();
  const auto reply = marshal::take_body<marshal::attribute_reply>(from);
  if (!from.finished()) return r.malformed();
  std::memcpy(out, reply.value.data(), sizeof *out);
  return result;
}

}  // namespace outboard::frontend::cuda
