// "1 session", "2 sessions": a number and the noun that it counts. Pure function.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace outboard {

/// `one` gets an s for any number but 1.
inline std::string counted(std::uint64_t number, std::string_view one) {
  return std::to_string(number).append(" ").append(one).append(number == 1 ? "" : "s");
}

}  // namespace outboard
