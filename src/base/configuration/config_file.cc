#include "base/configuration/config_file.hh"

#define TOML_EXCEPTIONS 0
#include <toml++/toml.h>

#include <algorithm>
#include <optional>

#include "base/configuration/settings.hh"
#include "base/joined.hh"

namespace outboard {
namespace {

/// The tables of the file, in the order of the settings.
std::string section_names() {
  std::string names;
  std::string_view last;
  for (const setting& s : all_settings()) {
    if (s.section.empty() || s.section == last) continue;
    names.append("[").append(s.section).append("], ");
    last = s.section;
  }
  return names + "[identity.NAME], [transport.NAME]";
}

std::string key_names(std::string_view section) {
  std::string names;
  for (const setting& s : all_settings()) {
    if (s.section == section) names.append(names.empty() ? "" : ", ").append(s.name);
  }
  return names;
}

bool is_section(std::string_view name) {
  return std::ranges::any_of(all_settings(), [&](const setting& s) { return s.section == name; });
}

/// Returns nothing if no setting takes a value of that type.
std::optional<given_value> value_of(const toml::node& node, const std::string& path) {
  const std::size_t slash = path.rfind('/');
  given_value value{.is = false, .untyped = false, .folder = slash == path.npos ? "" : path.substr(0, slash)};
  if (const auto flag = node.value_exact<bool>()) return value.is = *flag, value;
  if (const auto number = node.value_exact<std::int64_t>()) return value.is = *number, value;
  if (const auto text = node.value_exact<std::string>()) return value.is = *text, value;
  const toml::array* list = node.as_array();
  if (!list) return std::nullopt;
  std::vector<std::string> texts;
  for (const toml::node& element : *list) {
    const auto text = element.value_exact<std::string>();
    if (!text) return std::nullopt;
    texts.push_back(*text);
  }
  return value.is = std::move(texts), value;
}

class layer {
 public:
  layer(config& c, const std::string& path) : config_(c), path_(path) {}

  status apply(const toml::table& top) {
    for (const auto& [name, value] : top) {
      if (const toml::table* table = value.as_table()) {
        OUTBOARD_TRY(apply_section(name.str(), *table, value));
      } else {
        OUTBOARD_TRY(apply_key("", name.str(), value));
      }
    }
    return {};
  }

 private:
  status apply_section(std::string_view name, const toml::table& table, const toml::node& value) {
    if (name == "transport") return apply_plugins(table);
    if (name == "identity") return apply_identities(table);
    if (name.empty() || !is_section(name))
      return unknown("table [" + std::string(name) + "]", value, section_names());
    for (const auto& [key, key_value] : table) OUTBOARD_TRY(apply_key(name, key.str(), key_value));
    return {};
  }

  status apply_key(std::string_view section, std::string_view name, const toml::node& node) {
    const setting* s = find_setting(section, name);
    if (!s) {
      const std::string prefix = section.empty() ? "" : std::string(section) + ".";
      return unknown("key \"" + prefix + std::string(name) + "\"", node,
                     key_names(section) + (section.empty() ? ", " + section_names() : ""));
    }
    const auto value = value_of(node, path_);
    const status done = value ? s->set(config_, *value) : status(failure(""));
    const std::string where = line_of(node);
    if (!done.ok()) {
      return failure(where + ": " + s->key() + " has a bad value" +
                     (done.error().message.empty() ? ", accepted: " + std::string(s->accepted)
                                                   : ": " + done.error().message));
    }
    config_.origins[s->key()] = where;
    return {};
  }

  status apply_plugins(const toml::table& table) {
    for (const auto& [scheme, value] : table) {
      const toml::table* settings = value.as_table();
      if (!settings)
        return unknown("key \"transport." + std::string(scheme.str()) + "\"", value, "[transport.NAME]");
      std::string library;
      for (const auto& [name, node] : *settings) {
        if (name.str() != "library")
          return unknown("key \"" + std::string(name.str()) + "\"", node, "library");
        const auto given = value_of(node, path_);
        const auto* text = given ? std::get_if<std::string>(&given->is) : nullptr;
        if (!text || text->empty()) return unknown("value of library", node, "a path");
        library = resolved_path(*text, given->folder);
      }
      if (library.empty()) return unknown("transport without library", value, "library = \"/path/to.so\"");
      config_.plugins.emplace_back(scheme.str(), library);
    }
    return {};
  }

  status apply_identities(const toml::table& tables) {
    for (const auto& [name, value] : tables) {
      const toml::table* table = value.as_table();
      if (!table)
        return unknown("key \"identity." + std::string(name.str()) + "\"", value, "[identity.NAME]");
      if (!is_identity_name(name.str())) {
        return unknown("name of an identity \"" + std::string(name.str()) + "\"", value,
                       "1 to 64 letters, digits, \".\", \"_\" and \"-\"");
      }
      identity_settings& one = identity_of(name.str());
      one.origin = line_of(value);
      for (const auto& [key, node] : *table) OUTBOARD_TRY(apply_identity_key(one, key.str(), node));
    }
    return {};
  }

  /// One that an earlier layer has keeps what this one does not say.
  identity_settings& identity_of(std::string_view name) {
    const auto at = std::ranges::find(config_.identities, name, &identity_settings::name);
    if (at != config_.identities.end()) return *at;
    identity_settings& one = config_.identities.emplace_back();
    one.name = name;
    return one;
  }

  status apply_identity_key(identity_settings& one, std::string_view name, const toml::node& node) {
    const std::string key = "identity." + one.name + "." + std::string(name);
    const auto known = identity_keys();
    const auto at = std::ranges::find(known, name, &identity_key::name);
    if (at == known.end()) {
      std::vector<std::string_view> names;
      for (const identity_key& each : known) names.push_back(each.name);
      return unknown("key \"" + key + "\"", node, joined(names, ", "));
    }
    const auto value = value_of(node, path_);
    if (!value || !at->set(one, *value))
      return failure(line_of(node) + ": " + key + " has a bad value, accepted: " + std::string(at->accepted));
    config_.origins[key] = line_of(node);
    return {};
  }

  std::string line_of(const toml::node& at) const {
    return path_ + ":" + std::to_string(at.source().begin.line);
  }

  outboard::error unknown(const std::string& what, const toml::node& at, std::string_view known) const {
    return failure(line_of(at) + ": unknown " + what + ", accepted: " + std::string(known));
  }

  config& config_;
  const std::string& path_;
};

}  // namespace

status apply_config_text(config& c, std::string_view text, const std::string& path) {
  const toml::parse_result parsed = toml::parse(text, path);
  if (!parsed) {
    const std::string why(parsed.error().description());
    // toml++'s message for a word without quotes, which is the most common mistake.
    const bool bare_word = why.find("could not determine value type") != why.npos;
    return failure(path + ":" + std::to_string(parsed.error().source().begin.line) + ": " + why +
                   (bare_word ? "; a text stands in quotes, as in device = \"cpu\"" : ""));
  }
  // A layer applies completely or not at all: the copy replaces the configuration only if everything was
  // good.
  config next = c;
  OUTBOARD_TRY(layer(next, path).apply(parsed.table()));
  c = std::move(next);
  return {};
}

}  // namespace outboard
