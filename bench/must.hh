// Ends a benchmark if a CUDA call (runtime or driver) does not succeed.
#pragma once

#include <cstdio>
#include <cstdlib>

#define MUST(call)                                                                           \
  do {                                                                                       \
    if (const int must_result = static_cast<int>(call); must_result != 0) {                  \
      std::fprintf(stderr, "%s:%d: %s: error %d\n", __FILE__, __LINE__, #call, must_result); \
      std::exit(1);                                                                          \
    }                                                                                        \
  } while (0)
