#include "base/append_format.hh"

#include <array>
#include <cstdarg>
#include <cstdio>

#include "base/check.hh"

namespace outboard {

void append_format(std::string& out, const char* format, ...) {
  std::array<char, 256> text;
  va_list arguments, again;
  va_start(arguments, format);
  va_copy(again, arguments);
  const int n = std::vsnprintf(text.data(), text.size(), format, arguments);
  CHECK(n >= 0);
  const auto size = static_cast<std::size_t>(n);
  if (size < text.size()) {
    out.append(text.data(), size);
  } else {
    const std::size_t before = out.size();
    out.resize(before + size + 1);  // it writes its zero
    std::vsnprintf(out.data() + before, size + 1, format, again);
    out.pop_back();
  }
  va_end(again);
  va_end(arguments);
}

}  // namespace outboard
