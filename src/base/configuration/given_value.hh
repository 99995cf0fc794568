// A value of the configuration before it is known what it is for, and how settings read it. A value; the
// functions are pure. Any thread.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <variant>
#include <vector>

namespace outboard {

/// A value as a file has it, or a text as variables and flags have it, which is read by what the setting
/// wants.
struct given_value {
  std::variant<bool, std::int64_t, std::string, std::vector<std::string>> is;
  bool untyped = false;  ///< a text that stands for any type
  std::string folder;    ///< what a relative path begins at; empty: it stays as it is
};

// Nothing: it is no such value.
std::optional<std::string> text_in(const given_value& value);
/// Sizes are numbers, or texts with a unit.
std::optional<std::uint64_t> size_in(const given_value& value);
std::optional<std::int64_t> number_in(const given_value& value);
std::optional<bool> flag_in(const given_value& value);
/// One text or several; as one untyped text they stand between commas.
std::optional<std::vector<std::string>> texts_in(const given_value& value);

/// In binary units where it is a whole number of them.
std::string exact_size_text(std::uint64_t size);

}  // namespace outboard
