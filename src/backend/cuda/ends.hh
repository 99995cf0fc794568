// Declares the hand-written handlers: of every CUSTOM function and of every service, with what its line says
// that the request is made of. A missing one is a link error. The body has been read before the handler is
// called, and a malformed one answered: it checks what the fields mean.
#pragma once

#include "backend/cuda/call.hh"
#include "marshal/cuda/messages.hh"

namespace outboard::backend {

namespace detail {

/// outcome(call&, const Body&), and what differs from that.
template <class Request>
struct handler_type {
  using type = outcome(call&, const Request&);
};
template <>
struct handler_type<marshal::nothing> {
  using type = outcome(call&);
};
template <class Body>
struct handler_type<marshal::with_bytes<Body>> {
  using type = outcome(call&, const Body&, std::span<const std::byte>);
};
template <>
struct handler_type<marshal::raw_bytes> {
  using type = outcome(call&, std::span<const std::byte>);
};
/// Reads `call::body` itself.
template <class Body>
struct handler_type<marshal::by_hand<Body>> {
  using type = outcome(call&);
};

}  // namespace detail

template <auto Op>
using handler_of = typename detail::handler_type<typename marshal::message<Op>::request>::type;

namespace ends {

#define CHAPTER(number, file)
#define OUTBOARD_LINE(how, symbol, ...)
#define OUTBOARD_MESSAGE(symbol, request, reply) handler_of<api::opcode::symbol> symbol;
#include "api/cuda/expand.def"
#undef OUTBOARD_LINE
#undef CHAPTER

#define SERVICE(name, number, request, reply) handler_of<marshal::service::name> name;
#include "marshal/cuda/services.def"
#undef SERVICE

}  // namespace ends
}  // namespace outboard::backend
