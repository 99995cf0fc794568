// Declares the hand-written ends: every CUSTOM, VIA and LOCAL line of the tables is a function of the same
// name and type in this namespace. A line without a definition is a link error of the shim. Any thread;
// called from the C ABI, so nothing may throw.
#pragma once

#include "api/cuda/functions.hh"

namespace outboard::frontend::cuda::ends {

#define CHAPTER(number, file)
#define OUTBOARD_LINE(how, symbol, ...) OUTBOARD_END_##how(symbol)
#define OUTBOARD_END_call(symbol)
#define OUTBOARD_END_post(symbol)
#define OUTBOARD_END_custom(symbol) decltype(::symbol) symbol;
#define OUTBOARD_END_via(symbol) decltype(::symbol) symbol;
#define OUTBOARD_END_local(symbol) decltype(::symbol) symbol;
#define OUTBOARD_END_later(symbol)
#define OUTBOARD_END_refused(symbol)
#include "api/cuda/expand.def"
#undef OUTBOARD_END_call
#undef OUTBOARD_END_post
#undef OUTBOARD_END_custom
#undef OUTBOARD_END_via
#undef OUTBOARD_END_local
#undef OUTBOARD_END_later
#undef OUTBOARD_END_refused
#undef OUTBOARD_LINE
#undef CHAPTER

}  // namespace outboard::frontend::cuda::ends
