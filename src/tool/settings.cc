#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "base/settings.hh"
#include "tool/text.hh"
#include "tool/verbs.hh"

namespace outboard::tool {
namespace {

bool is_list(const setting& s) { return s.form == value_form::texts || s.form == value_form::urls; }

/// A value as it stands in a file.
std::string in_file(const setting& s, const std::string& text) {
  if (s.form == value_form::flag) return text == "1" ? "true" : "false";
  if (s.form == value_form::number) return text;
  if (!is_list(s)) return fmt::format("\"{}\"", text);
  std::string list = text;
  for (std::size_t at = 0; (at = list.find(',', at)) != list.npos; at += 4) list.replace(at, 1, "\", \"");
  return text.empty() ? "[]" : fmt::format("[\"{}\"]", list);
}

std::string default_of(const setting& s) {
  const std::string text = s.text(config{});
  // The size 0 stands for a default that `meaning` names.
  return text.empty() || (s.form == value_form::size && text == "0") ? "" : in_file(s, text);
}

std::string wrapped(const std::string& text, std::size_t width) {
  std::string out, line = "#";
  std::size_t at = 0;
  while (at < text.size()) {
    const std::size_t blank = std::min(text.find(' ', at), text.size());
    const std::string word = text.substr(at, blank - at);
    if (line.size() + 1 + word.size() > width) {
      out += fmt::format("{}\n", line);
      line = "#";
    }
    line += fmt::format(" {}", word);
    at = blank + 1;
  }
  return fmt::format("{}{}\n", out, line);
}

constexpr const char* example_head =
    "# An example of Outboard's configuration: every setting is commented out and has its default.\n"
    "# Copy it to /etc/outboard/outboard.toml (for the machine) or ~/.config/outboard/outboard.toml\n"
    "# (for you). Your file wins over the machine's, variables (OUTBOARD_...) win over both, and flags\n"
    "# win over all. An unknown key or a bad value is an error that names the file, the line and what\n"
    "# is accepted. `outboard settings` shows the values that hold on a machine, and what set each.\n";

/// Has no value for everybody.
bool only_in_rows(const setting& s) { return s.section == "identity" && s.name == "members"; }

std::string example_text() {
  std::string text = example_head;
  std::string_view section;
  bool lends = false;
  text += "\n# --- For a machine that borrows GPUs, and some for both ---\n";
  for (const setting& s : all_settings()) {
    if (only_in_rows(s)) continue;
    if (!lends && !s.is_for(reader::program) && s.variable.empty()) {
      text += "\n# --- For a machine that lends its GPUs with `outboard serve` ---\n";
      lends = true;
    }
    if (s.section != section) text += fmt::format("\n[{}]\n", s.section);
    section = s.section;
    const std::string value = default_of(s);
    text +=
        fmt::format("\n{}# {} = {}\n", wrapped(fmt::format("{} ({})", s.meaning, s.accepted), 118), s.name,
                    !value.empty() ? value
                    : is_list(s)   ? "[]"
                                   : "\"\"");
  }
  return text +
         "\n# A tenant of that name. The row takes all keys of [identity], and begins with their values; "
         "`members` says\n"
         "# who belongs to it (default: the token of that name).\n"
         "# [identity.NAME]\n"
         "# members = [\"token NAME\", \"group students\", \"user ann\"]\n"
         "\n# A transport that is not built in: a shared object with the interface of\n"
         "# src/transport/plugin/abi.h. Its URLs begin with NAME:\n"
         "# [transport.NAME]\n"
         "# library = \"/usr/lib/outboard/NAME.so\"\n";
}

/// A bar in a text must not end its cell of the table.
std::string cell(std::string text) {
  for (std::size_t at = 0; (at = text.find('|', at)) != text.npos; at += 2) text.insert(at, 1, '\\');
  return text;
}

std::string document_text() {
  std::string out =
      "# Settings\n\n"
      "Every setting. `outboard settings --document` prints this page from a table,\n"
      "[src/base/settings.cc](../src/base/settings.cc).\n"
      "[command.md](command.md#settings-of-a-program) says where settings come from, and\n"
      "[admin.md](admin.md) what a server does with its own. `outboard settings` shows the values that\n"
      "hold on a machine, and what set each.\n";
  std::string_view section = "?";
  for (const setting& s : all_settings()) {
    if (s.section != section) {
      out += fmt::format(
          "\n## {}\n\n| key | variable | flag | default | accepted | means |\n|---|---|---|---|---|---|\n",
          s.section.empty() ? std::string("Outside of tables") : fmt::format("`[{}]`", s.section));
    }
    section = s.section;
    const auto code = [](std::string_view text) {
      return text.empty() ? std::string() : fmt::format("`{}`", text);
    };
    out += fmt::format("| `{}` | {} | {} | {} | {} | {} |\n", s.name, code(s.variable), code(s.flag),
                       code(default_of(s)), cell(std::string(s.accepted)), cell(std::string(s.meaning)));
  }
  return out;
}

std::string origin_of(const config& c, const setting& s) {
  const auto at = c.origins.find(s.key());
  return at == c.origins.end() ? "default" : at->second;
}

struct line {
  const setting* what;
  std::string key, text, origin;
};

/// All settings, and the keys that rows of identities set.
std::vector<line> all_lines(const config& c) {
  std::vector<line> list;
  for (const setting& s : all_settings()) {
    if (!only_in_rows(s)) list.push_back({&s, s.key(), s.text(c), origin_of(c, s)});
  }
  for (const named_identity& row : c.identities) {
    config of_row;
    of_row.identity = row.is;
    for (const setting& s : all_settings()) {
      const std::string key = fmt::format("identity.{}.{}", row.name, s.name);
      const auto at = s.section == "identity" ? c.origins.find(key) : c.origins.end();
      if (at != c.origins.end()) list.push_back({&s, key, s.text(of_row), at->second});
    }
  }
  return list;
}

std::string values_text(const config& c) {
  std::vector<std::vector<std::string>> rows{{"KEY", "VALUE", "SET BY"}};
  for (const line& one : all_lines(c)) rows.push_back({one.key, in_file(*one.what, one.text), one.origin});
  return table(rows);
}

std::string json_text(const config& c) {
  nlohmann::json list = nlohmann::json::array();
  for (const line& one : all_lines(c)) {
    list.push_back(
        {{"key", one.key}, {"value", one.text}, {"from", one.origin}, {"meaning", one.what->meaning}});
  }
  return list.dump(2, ' ', false, nlohmann::json::error_handler_t::replace) + "\n";
}

}  // namespace

int verb_settings(const common_flags& common, bool example, bool document) {
  if (example || document) return print(example ? example_text() : document_text());
  const auto c = load_with_flags(common);
  if (!c.ok()) return complain_of_configuration(c.error());
  return print(common.json ? json_text(*c) : values_text(*c));
}

}  // namespace outboard::tool
