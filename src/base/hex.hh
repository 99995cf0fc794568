// Bytes as hexadecimal digits, two each, small letters. Any thread.
#pragma once

#include <charconv>
#include <cstddef>
#include <span>
#include <string>
#include <string_view>

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

/// The bytes that the digits say, small letters or large. False: they are no such digits, or not for so many
/// bytes.
inline bool take_hex(std::string_view digits, std::span<std::byte> into) {
  if (digits.size() != 2 * into.size()) return false;
  for (std::byte& each : into) {
    unsigned value = 0;
    const auto [end, code] = std::from_chars(digits.data(), digits.data() + 2, value, 16);
    if (code != std::errc() || end != digits.data() + 2) return false;
    each = static_cast<std::byte>(value);
    digits.remove_prefix(2);
  }
  return true;
}

/// As drivers print them: 8-4-4-4-12 digits.
inline std::string uuid_text(std::span<const std::byte, 16> uuid) {
  std::string text = hex(uuid);
  for (const std::size_t at : {8, 13, 18, 23}) text.insert(at, 1, '-');
  return text;
}

}  // namespace outboard
