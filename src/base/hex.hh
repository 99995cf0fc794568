// Bytes as hexadecimal digits, two each, in lower case. Any thread.
#pragma once

#include <cstddef>
#include <span>
#include <string>

namespace outboard {

inline std::string hex(std::span<const std::byte> bytes) {
  std::string text;
  text.reserve(2 * bytes.size());
  for (const std::byte b : bytes) {
    text += "0123456789abcdef"[std::to_integer<int>(b >> 4)];
    text += "0123456789abcdef"[std::to_integer<int>(b & std::byte{15})];
  }
  return text;
}

/// In the form that drivers print: 8-4-4-4-12 digits.
inline std::string uuid_text(std::span<const std::byte, 16> uuid) {
  std::string text = hex(uuid);
  for (const std::size_t at : {8, 13, 18, 23}) text.insert(at, 1, '-');
  return text;
}

}  // namespace outboard
