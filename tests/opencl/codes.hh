// Prints calls and their codes, one per line; Outboard must return the same codes as a local platform.
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
