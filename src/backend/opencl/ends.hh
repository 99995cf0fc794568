// Declares the hand-written handlers. A line of handlers.def without a definition is a link error.
#pragma once

#include "backend/opencl/session.hh"

namespace outboard::backend::opencl::ends {

#define HANDLER(symbol) outcome symbol(call& c);
#define SERVICE(name) outcome name(call& c);
#include "backend/opencl/handlers.def"
#undef HANDLER
#undef SERVICE

}  // namespace outboard::backend::opencl::ends
