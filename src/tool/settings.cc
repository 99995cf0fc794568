// `outboard settings`: what holds and what set it; the example file and the page that follow from the rows.
#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "base/configuration/identity_settings.hh"
#include "base/configuration/settings.hh"
#include "tool/json_text.hh"
#include "tool/text.hh"
#include "tool/verbs.hh"

namespace outboard::tool {
namespace {

bool is_list(const setting& s) { return s.form == value_form::texts || s.form == value_form::urls; }

/// A value as it stands in a file.
std::string in_file(const setting& s, const std::string& text) {
  if (s.form == value_form::flag) return text == "1" ? "true" : "false";
  if (s.form == value_form::number) return text;
  std::string quoted;
  for (const char c : text) {
    if (c == '"' || c == '\\') quoted += '\\';
    quoted += c;
    if (c == ',' && is_list(s)) quoted.replace(quoted.size() - 1, 1, "\", \"");
  }
  if (!is_list(s)) return fmt::format("\"{}\"", quoted);
  return text.empty() ? "[]" : fmt::format("[\"{}\"]", quoted);
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

std::string example_text() {
  std::string text = example_head;
  std::string_view section;
  bool lends = false;
  text += "\n# --- For a machine that borrows GPUs, and some for both ---\n";
  for (const setting& s : all_settings()) {
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
  text +=
      "\n# Who may do what and have how much: a table for each person or group, and one for everybody else, "
      "who\n"
      "# are each for themselves. Without tables all have the same (docs/command.md, \"Identities\").\n"
      "# [identity.NAME]\n";
  for (const identity_key& key : identity_keys())
    text += fmt::format("{}# {} = {}\n", wrapped(fmt::format("{} ({})", key.meaning, key.accepted), 118),
                        key.name, key.example);
  return text +
         "\n# [identity.default]\n# sessions = 1\n"
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
      "Every setting. `outboard settings --document` prints this page from a table, "
      "`src/base/configuration/settings.cc`.\n"
      "[command.md](command.md#configuration) says where settings come from and what a server does with\n"
      "its own. `outboard settings` shows the values that hold on a machine, and what set each. What accepts "
      "true and\n"
      "false also accepts 1 and 0 in its variable.\n";
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
  out +=
      "\n## `[identity.NAME]`\n\nOf a server: [who may do what and have how much](command.md#identities). "
      "`[identity.default]` is for everybody\nwhom no other table names, each for himself.\n\n"
      "| key | example | accepted | means |\n|---|---|---|---|\n";
  for (const identity_key& key : identity_keys()) {
    out += fmt::format("| `{}` | `{}` | {} | {} |\n", key.name, key.example, cell(std::string(key.accepted)),
                       cell(std::string(key.meaning)));
  }
  return out;
}

/// A key of a table [identity.NAME] that is set.
struct identity_value {
  std::string key, text, origin;
  std::string_view meaning;
};

std::vector<identity_value> identity_values(const config& c) {
  std::vector<identity_value> values;
  for (const identity_settings& table : c.identities) {
    for (const identity_key& key : identity_keys()) {
      const std::string name = fmt::format("identity.{}.{}", table.name, key.name);
      const auto origin = c.origins.find(name);
      if (origin != c.origins.end()) values.push_back({name, key.text(table), origin->second, key.meaning});
    }
  }
  return values;
}

/// "-": what `meaning` calls the default.
std::string value_of(const config& c, const setting& s) {
  const std::string text = s.text(c);
  return text == s.text(config{}) && default_of(s).empty() ? "-" : in_file(s, text);
}

std::string origin_of(const config& c, const setting& s) {
  const auto at = c.origins.find(s.key());
  return at == c.origins.end() ? "default" : at->second;
}

std::string values_text(const config& c) {
  std::vector<std::vector<std::string>> rows{{"KEY", "VALUE", "SET BY"}};
  for (const setting& s : all_settings()) rows.push_back({s.key(), value_of(c, s), origin_of(c, s)});
  for (const identity_value& v : identity_values(c)) rows.push_back({v.key, v.text, v.origin});
  return table(rows);
}

std::string json_list(const config& c) {
  nlohmann::json list = nlohmann::json::array();
  for (const setting& s : all_settings()) {
    list.push_back(
        {{"key", s.key()}, {"value", s.text(c)}, {"from", origin_of(c, s)}, {"meaning", s.meaning}});
  }
  for (const identity_value& v : identity_values(c))
    list.push_back({{"key", v.key}, {"value", v.text}, {"from", v.origin}, {"meaning", v.meaning}});
  return printed_json(list);
}

}  // namespace

int verb_settings(const common_flags& common, bool example, bool document) {
  if (example || document) return print(example ? example_text() : document_text());
  const auto c = load_with_flags(common);
  if (!c.ok()) return complain_of_configuration(c.error());
  return print(common.json ? json_list(*c) : values_text(*c));
}

}  // namespace outboard::tool
