// Every setting of Outboard, one row each: where it stands in a file, its variable and its flag, which values
// it takes and what it means. The reader of files, the environment, the command line, what `outboard run`
// gives to its program, what a daemon gives to its workers, the example file and docs/settings.md all follow
// from the row. Rows are constants; functions are pure but for what they set. Any thread.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/configuration/config.hh"
#include "base/configuration/given_value.hh"

namespace outboard {

/// Who reads a setting; several may.
enum class reader : unsigned { program = 1, server = 2, worker = 4 };
constexpr unsigned operator|(reader a, reader b) {
  return static_cast<unsigned>(a) | static_cast<unsigned>(b);
}
constexpr unsigned operator|(unsigned a, reader b) { return a | static_cast<unsigned>(b); }

/// What the values of a setting look like, for files, flags and documents.
enum class value_form : std::uint8_t { flag, number, size, path, text, texts, urls };

struct setting {
  std::string_view section;   ///< table of the file; empty: none
  std::string_view name;      ///< key in it
  std::string_view variable;  ///< of the environment; empty: none
  std::string_view flag;      ///< of the verbs that read it; empty: none
  unsigned readers = 0;       ///< of `reader`
  std::string_view accepted;  ///< the values that it takes, for errors and documents
  std::string_view meaning;   ///< one line
  /// An error: the value is not one that it takes, and nothing is changed. Its text is empty where `accepted`
  /// says all that there is to say.
  status (*set)(config& c, const given_value& value) = nullptr;
  /// As variables and flags have it; set() takes it back.
  std::string (*text)(const config& c) = nullptr;
  value_form form = value_form::text;

  bool is_for(reader r) const { return (readers & static_cast<unsigned>(r)) != 0; }
  std::string key() const;  ///< "section.name"
};

/// In the order of the example file: what borrows, what lends, then the tables.
std::span<const setting> all_settings();
/// By section and name, or by the whole key. nullptr: there is none.
const setting* find_setting(std::string_view section, std::string_view name);
const setting* find_setting(std::string_view key);

/// A path in a file: "~/" is the user's home folder, another relative one begins at `folder` unless that is
/// empty.
std::string resolved_path(const std::string& path, const std::string& folder);

/// Sets by text. The error names `what` (a variable, a flag), the text and what is accepted.
status set_by_text(config& c, const setting& s, std::string_view what, std::string_view text);

/// Names and texts of the settings of one reader that differ from their defaults.
std::vector<std::pair<const setting*, std::string>> changed_settings(const config& c, reader by);

}  // namespace outboard
