// Declares the hand-written handlers: of every line of the tables that has a request one of the line's name,
// with the types that the line says, and the services. One without a definition is a link error.
#pragma once

#include <span>

#include "backend/cuda/received.hh"

namespace outboard::backend {

/// A handler by opcode; nullptr: a line without requests of its own.
struct bound_handler {
  std::uint32_t opcode;
  handler handle;
};

/// Those of all functions and services whose handlers are hand-written. Static storage; any thread.
std::span<const bound_handler> hand_written_handlers();

namespace ends {

#define CHAPTER(number, file)
#define OUTBOARD_LINE(how, symbol, ...) OUTBOARD_END_##how(symbol)
#define OUTBOARD_END_custom(symbol) end_type<api::opcode::symbol, api::kind::custom> symbol;
#define OUTBOARD_END_call(symbol)
#define OUTBOARD_END_post(symbol)
#define OUTBOARD_END_local(symbol)
#define OUTBOARD_END_refused(symbol)
#include "api/cuda/expand.def"
#undef OUTBOARD_END_custom
#undef OUTBOARD_END_call
#undef OUTBOARD_END_post
#undef OUTBOARD_END_local
#undef OUTBOARD_END_refused
#undef OUTBOARD_LINE
#undef CHAPTER

#define SERVICE(name, ...) end_type<marshal::service::name, api::kind::custom> name;
#include "marshal/cuda/services.def"
#undef SERVICE

}  // namespace ends
}  // namespace outboard::backend
