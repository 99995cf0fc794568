// Declares the hand-written handlers: of every CUSTOM function, and of every service. A missing one is a link
// error.
#pragma once

#include "backend/cuda/call.hh"

namespace outboard::backend::ends {

#define CHAPTER(number, file)
#define OUTBOARD_LINE(how, symbol, ...) OUTBOARD_HANDLER_##how(symbol)
#define OUTBOARD_HANDLER_call(symbol)
#define OUTBOARD_HANDLER_post(symbol)
#define OUTBOARD_HANDLER_custom(symbol) outcome symbol(call& c);
#define OUTBOARD_HANDLER_via(symbol)
#define OUTBOARD_HANDLER_local(symbol)
#define OUTBOARD_HANDLER_later(symbol)
#define OUTBOARD_HANDLER_refused(symbol)
#include "api/cuda/expand.def"
#undef OUTBOARD_HANDLER_call
#undef OUTBOARD_HANDLER_post
#undef OUTBOARD_HANDLER_custom
#undef OUTBOARD_HANDLER_via
#undef OUTBOARD_HANDLER_local
#undef OUTBOARD_HANDLER_later
#undef OUTBOARD_HANDLER_refused
#undef OUTBOARD_LINE
#undef CHAPTER

#define SERVICE(name, number, request, reply) outcome name(call& c);
#include "marshal/cuda/services.def"
#undef SERVICE

}  // namespace outboard::backend::ends
