// Where programs that are asked for often, and are not there, come from. A constant table; any thread.
#pragma once

#include <string_view>

namespace outboard::tool {

/// What to install for a program of this name (not a path), as the end of a sentence; empty: nothing is
/// known of it.
std::string_view package_hint(std::string_view program);

}  // namespace outboard::tool
