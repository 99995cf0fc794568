// printf into the end of a text, whatever its length. Pure function.
#pragma once

#include <string>

namespace outboard {

[[gnu::format(printf, 2, 3)]] void append_format(std::string& out, const char* format, ...);

}  // namespace outboard
