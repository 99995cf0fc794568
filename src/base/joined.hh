// A list as one text. Pure function.
#pragma once

#include <string>
#include <string_view>

namespace outboard {

template <class List>
std::string joined(const List& list, std::string_view between) {
  std::string text;
  bool first = true;
  for (const auto& one : list) {
    if (!first) text += between;
    text += one;
    first = false;
  }
  return text;
}

}  // namespace outboard
