// Shared by the programs of this folder. They are ordinary CUDA programs: nothing here knows of Outboard.
// Each ends with one line, PASS or FAIL and its name, and exits non-zero after FAIL.
#pragma once

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <vector>

/// Ends the program when a CUDA call (runtime or driver) does not succeed.
#define MUST(call)                                                                          \
  do {                                                                                      \
    if (auto must_result = (call); static_cast<int>(must_result) != 0) {                    \
      std::printf("FAIL %s:%d: %s gave %d\n", __FILE__, __LINE__, #call, (int)must_result); \
      std::exit(1);                                                                         \
    }                                                                                       \
  } while (0)

/// Ends the program when a condition of the test does not hold.
#define EXPECT(condition)                                                      \
  do {                                                                         \
    if (!(condition)) {                                                        \
      std::printf("FAIL %s:%d: not so: %s\n", __FILE__, __LINE__, #condition); \
      std::exit(1);                                                            \
    }                                                                          \
  } while (0)

/// The same numbers in every run: a 32-bit xorshift.
struct numbers {
  std::uint32_t state = 2463534242u;
  std::uint32_t next() {
    state ^= state << 13;
    state ^= state >> 17;
    return state ^= state << 5;
  }
  /// In [-1, 1).
  float next_float() { return static_cast<float>(static_cast<std::int32_t>(next())) / 2147483648.0f; }
};

inline int pass(const char* name) {
  std::printf("PASS %s\n", name);
  return 0;
}

/// The numeric argument at a place of the command line, or `otherwise` if it is missing.
inline long argument(int count, char** values, int place, long otherwise) {
  return count > place ? std::strtol(values[place], nullptr, 10) : otherwise;
}
