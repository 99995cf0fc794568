// errno_text: the system's words for an errno value. Any thread (strerror is not safe before glibc 2.32).
#pragma once

#include <cstring>
#include <string>

namespace outboard {

inline std::string errno_text(int code) {
  char buffer[128];
  // The GNU variant returns the text, which need not be in the buffer.
  return strerror_r(code, buffer, sizeof buffer);
}

}  // namespace outboard
