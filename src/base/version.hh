// Our name and version, as peers and users see them. Constants; the number is the project's in
// CMakeLists.txt.
#pragma once

#include <string_view>

namespace outboard {

inline constexpr std::string_view version = OUTBOARD_VERSION;
inline constexpr std::string_view product = "outboard " OUTBOARD_VERSION;

}  // namespace outboard
