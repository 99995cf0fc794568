// Calls and the codes that they get, a line each: what a local platform says, Outboard says.
#pragma once

#include "program.hh"

inline void say(const char* what, cl_int code) { std::printf("%s: %d\n", what, code); }

#define CODE(call) say(#call, (call))
#define MAKES(call)                          \
  do {                                       \
    cl_int code = 12345;                     \
    const bool made = (call) != nullptr;     \
    say(made ? "made " #call : #call, code); \
  } while (false)
