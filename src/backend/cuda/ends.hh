// Declares the hand-written handlers. HANDLER lines in handlers.def bind an opcode to a function of the same
// name here; a line without a definition is a link error.
#pragma once

#include "backend/cuda/call.hh"

namespace outboard::backend::ends {

#define HANDLER(symbol) outcome symbol(call& c);
#define SERVICE(name) outcome name(call& c);
#include "backend/cuda/handlers.def"
#undef HANDLER
#undef SERVICE

}  // namespace outboard::backend::ends
