#include "base/config_file.hh"

#define TOML_EXCEPTIONS 0
#include <toml++/toml.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <limits>
#include <span>

#include "base/schemes.hh"

namespace outboard {
namespace {

/// What a setter gets: where the value goes, the value, and what errors need.
struct input {
  config& into;
  const toml::node& value;
  const std::string& path;
  std::string_view key;

  outboard::error bad(std::string_view accepted) const {
    return failure(path + ":" + std::to_string(value.source().begin.line) + ": " + std::string(key) +
                   " has a bad value, accepted: " + std::string(accepted));
  }
};

struct key {
  std::string_view name;
  status (*set)(const input&);
};

status set_text(const input& in, std::string& to) {
  const auto text = in.value.value_exact<std::string>();
  if (!text || text->empty()) return in.bad("a text");
  to = *text;
  return {};
}

status set_path(const input& in, std::string& to) {
  OUTBOARD_TRY(set_text(in, to));
  if (to.starts_with("~/")) {
    const char* home = std::getenv("HOME");
    if (home) to = home + to.substr(1);
  } else if (to[0] != '/') {
    const std::size_t slash = in.path.rfind('/');
    if (slash != std::string::npos) to = in.path.substr(0, slash + 1) + to;
  }
  return {};
}

status set_flag(const input& in, bool& to) {
  const auto flag = in.value.value_exact<bool>();
  if (!flag) return in.bad("true, false");
  to = *flag;
  return {};
}

status set_number(const input& in, std::uint32_t& to, std::int64_t least, std::int64_t most) {
  const auto number = in.value.value_exact<std::int64_t>();
  if (!number || *number < least || *number > most) {
    return in.bad("a number from " + std::to_string(least) + " to " + std::to_string(most));
  }
  to = static_cast<std::uint32_t>(*number);
  return {};
}

/// One text, or a list of texts.
status set_texts(const input& in, std::vector<std::string>& to, std::string_view accepted) {
  std::vector<std::string> texts;
  if (const auto one = in.value.value_exact<std::string>()) {
    texts.push_back(*one);
  } else if (const toml::array* list = in.value.as_array()) {
    for (const toml::node& element : *list) {
      const auto text = element.value_exact<std::string>();
      if (!text) return in.bad(accepted);
      texts.push_back(*text);
    }
  } else {
    return in.bad(accepted);
  }
  to = std::move(texts);
  return {};
}

status set_endpoints(const input& in, std::vector<std::string>& to) {
  const std::string accepted = "one or a list of " + url_forms();
  std::vector<std::string> texts, endpoints;
  OUTBOARD_TRY(set_texts(in, texts, accepted));
  for (const std::string& text : texts) {
    auto some = parse_endpoints(text);
    if (!some.ok()) return in.bad(accepted);
    endpoints.insert(endpoints.end(), some->begin(), some->end());
  }
  if (endpoints.empty()) return in.bad(accepted);
  to = std::move(endpoints);
  return {};
}

status set_log(const input& in) {
  const auto level = log::parse_level(in.value.value_or(std::string_view()));
  if (!level) return in.bad("off, error, warn, info, debug");
  in.into.log = *level;
  in.into.log_given = true;
  return {};
}

status set_format(const input& in) {
  const auto text = in.value.value_or(std::string_view());
  if (text != "console" && text != "json") return in.bad("console, json");
  in.into.format = text == "json" ? log_format::json : log_format::console;
  return {};
}

status set_device(const input& in) {
  const auto device = parse_device(in.value.value_or(std::string_view()));
  if (!device) return in.bad("auto, vendor, cpu");
  in.into.device = *device;
  return {};
}

status set_capability(const input& in) {
  const auto text = in.value.value_or(std::string_view());
  std::uint32_t value = 0;
  bool fits = text.size() >= 3 && text.size() <= 4;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    const bool digit = c >= '0' && c <= '9';
    fits = fits && (i + 2 == text.size() ? c == '.' : digit);
    if (digit) value = value * 10 + static_cast<std::uint32_t>(c - '0');
  }
  if (!fits || value < 50 || value > 120) return in.bad("a text from \"5.0\" to \"12.0\"");
  in.into.cpu.capability = value;
  return {};
}

status set_memory(const input& in, std::uint64_t& to, std::uint64_t least, std::string_view accepted) {
  const auto number = in.value.value_exact<std::int64_t>();
  const auto size = number ? std::optional<std::uint64_t>(static_cast<std::uint64_t>(*number))
                           : parse_size(in.value.value_or(std::string_view()));
  if (!size || *size < least || *size > (1ull << 44)) return in.bad(accepted);
  to = *size;
  return {};
}

status set_disk(const input& in, std::uint64_t& to) {
  return set_memory(in, to, 0, "a size like \"2GiB\", up to 16TiB; 0: none");
}

/// What programs print and compare: one line, and no longer than the vendor's libraries have room for.
status set_name(const input& in) {
  const auto text = in.value.value_exact<std::string>();
  constexpr std::size_t room = 95;
  bool good = text && !text->empty() && text->size() <= room &&
              std::all_of(text->begin(), text->end(), [](unsigned char c) { return c >= ' ' && c != 127; });
  if (good) {
    std::string rest = *text;
    if (const std::size_t at = rest.find(board_name_mark); at != rest.npos)
      rest.erase(at, board_name_mark.size());
    good = rest.find_first_of("{}") == rest.npos;
  }
  if (!good) return in.bad("a line of 1 to 95 bytes, in which {name} once stands for the board's own name");
  in.into.shape.name = *text;
  return {};
}

status set_visible(const input& in) {
  constexpr std::string_view accepted =
      "a list of indices (\"0\") and beginnings of UUIDs (\"GPU-1a2b\"), each device once";
  OUTBOARD_TRY(set_texts(in, in.into.shape.visible, accepted));
  const auto& list = in.into.shape.visible;
  for (auto at = list.begin(); at != list.end(); ++at) {
    if (at->empty() || std::find(list.begin(), at, *at) != at) return in.bad(accepted);
  }
  return list.empty() ? in.bad(accepted) : status{};
}

status set_confine(const input& in) {
  constexpr std::array<std::string_view, 3> words{"auto", "require", "off"};
  const auto at = std::find(words.begin(), words.end(), in.value.value_or(std::string_view()));
  if (at == words.end()) return in.bad("auto, require, off");
  in.into.confine = static_cast<confine_choice>(at - words.begin());
  return {};
}

status set_grace(const input& in) {
  if (in.value.value_exact<std::int64_t>() != 0) return in.bad("0 (reconnecting is not supported yet)");
  return {};
}

constexpr key top_keys[]{
    {"server", [](const input& in) { return set_endpoints(in, in.into.servers); }},
    {"sync", [](const input& in) { return set_flag(in, in.into.sync); }},
    {"trace", [](const input& in) { return set_path(in, in.into.trace); }},
    {"token_file", [](const input& in) { return set_path(in, in.into.token_file); }},
    {"rings", [](const input& in) { return set_flag(in, in.into.rings); }},
    {"data_connections",
     [](const input& in) { return set_number(in, in.into.data_connections, 0, most_data_connections); }},
    {"compression", [](const input& in) { return set_flag(in, in.into.compression); }},
    {"module_cache", [](const input& in) { return set_flag(in, in.into.module_cache); }},
    {"wait_seconds",
     [](const input& in) { return set_number(in, in.into.wait_seconds, 1, most_wait_seconds); }},
    {"find_addresses", [](const input& in) { return set_flag(in, in.into.find_addresses); }},
    {"concurrent_managed", [](const input& in) { return set_flag(in, in.into.concurrent_managed); }},
    {"log", set_log},
    {"log_format", set_format},
    {"device", set_device},
    {"listen", [](const input& in) { return set_endpoints(in, in.into.listen); }},
    {"insecure", [](const input& in) { return set_flag(in, in.into.insecure); }},
    {"allow_users",
     [](const input& in) {
       return set_texts(in, in.into.allow_users, "a list of user names or numbers, or \"*\"");
     }},
};

constexpr key limit_keys[]{
    {"sessions", [](const input& in) { return set_number(in, in.into.limits.sessions, 1, 100000); }},
    {"running", [](const input& in) { return set_number(in, in.into.limits.running, 0, 100000); }},
    {"unauthenticated",
     [](const input& in) { return set_number(in, in.into.limits.unauthenticated, 1, 100000); }},
    {"hello_seconds", [](const input& in) { return set_number(in, in.into.limits.hello_seconds, 1, 600); }},
    {"drain_seconds", [](const input& in) { return set_number(in, in.into.limits.drain_seconds, 0, 86400); }},
    {"keepalive_seconds",
     [](const input& in) { return set_number(in, in.into.limits.keepalive_seconds, 1, 86400); }},
    {"grace_seconds", set_grace},
};

constexpr key pool_keys[]{
    {"per_key", [](const input& in) { return set_number(in, in.into.pool.per_key, 0, 64); }},
    {"burst", [](const input& in) { return set_number(in, in.into.pool.burst, 0, 64); }},
    {"most", [](const input& in) { return set_number(in, in.into.pool.most, 0, 1024); }},
    {"idle_minutes", [](const input& in) { return set_number(in, in.into.pool.idle_minutes, 1, 10080); }},
};

constexpr key cache_keys[]{
    {"directory", [](const input& in) { return set_path(in, in.into.cache.directory); }},
    {"size", [](const input& in) { return set_disk(in, in.into.cache.size); }},
};

constexpr key compiler_cache_keys[]{
    {"directory", [](const input& in) { return set_path(in, in.into.compiler_cache.directory); }},
    {"size", [](const input& in) { return set_disk(in, in.into.compiler_cache.size); }},
    {"per_identity", [](const input& in) { return set_disk(in, in.into.compiler_cache.per_identity); }},
};

constexpr key device_keys[]{
    {"visible", set_visible},
    {"name", set_name},
    {"memory",
     [](const input& in) {
       // Less than this and no runtime starts: contexts, printf buffers, a first block.
       return set_memory(in, in.into.shape.memory, 64u << 20, "a size like \"8GiB\", from 64MiB to 16TiB");
     }},
};

constexpr key worker_keys[]{{"confine", set_confine}};

constexpr key cpu_keys[]{
    {"compute_capability", set_capability},
    {"memory",
     [](const input& in) {
       return set_memory(in, in.into.cpu.memory, 16u << 20, "a size like \"4GiB\", from 16MiB to 16TiB");
     }},
    {"cores", [](const input& in) { return set_number(in, in.into.cpu.cores, 0, 4096); }},
    {"kernel_timeout_seconds",
     [](const input& in) { return set_number(in, in.into.cpu.kernel_timeout_seconds, 0, 86400); }},
};

struct section {
  std::string_view name;
  std::span<const key> keys;
};
constexpr section sections[]{{"limits", limit_keys},   {"pool", pool_keys},
                             {"cache", cache_keys},    {"compiler_cache", compiler_cache_keys},
                             {"devices", device_keys}, {"worker", worker_keys},
                             {"cpu", cpu_keys}};
constexpr std::string_view section_names =
    "[limits], [pool], [cache], [compiler_cache], [devices], [worker], [cpu], [transport.NAME]";

class layer {
 public:
  layer(config& c, const std::string& path) : config_(c), path_(path) {}

  status apply(const toml::table& top) {
    for (const auto& [name, value] : top) {
      if (const toml::table* table = value.as_table()) {
        OUTBOARD_TRY(apply_section(name.str(), *table, value));
      } else {
        OUTBOARD_TRY(apply_key(top_keys, "", name.str(), value, ", " + std::string(section_names)));
      }
    }
    return {};
  }

 private:
  status apply_section(std::string_view name, const toml::table& table, const toml::node& value) {
    if (name == "transport") return apply_plugins(table);
    for (const section& s : sections) {
      if (s.name != name) continue;
      for (const auto& [key_name, key_value] : table) {
        OUTBOARD_TRY(apply_key(s.keys, std::string(name) + ".", key_name.str(), key_value, ""));
      }
      return {};
    }
    return unknown("table [" + std::string(name) + "]", value, section_names);
  }

  status apply_key(std::span<const key> known, const std::string& prefix, std::string_view name,
                   const toml::node& value, std::string_view further) {
    std::string names;
    for (const key& k : known) {
      const std::string full = prefix + std::string(name);
      if (k.name == name) return k.set(input{config_, value, path_, full});
      names.append(names.empty() ? "" : ", ").append(k.name);
    }
    return unknown("key \"" + prefix + std::string(name) + "\"", value, names.append(further));
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
        OUTBOARD_TRY(set_path(input{config_, node, path_, "library"}, library));
      }
      if (library.empty()) return unknown("transport without library", value, "library = \"/path/to.so\"");
      config_.plugins.emplace_back(scheme.str(), library);
    }
    return {};
  }

  outboard::error unknown(const std::string& what, const toml::node& at, std::string_view known) const {
    return failure(path_ + ":" + std::to_string(at.source().begin.line) + ": unknown " + what +
                   ", accepted: " + std::string(known));
  }

  config& config_;
  const std::string& path_;
};

}  // namespace

status apply_config_text(config& c, std::string_view text, const std::string& path) {
  const toml::parse_result parsed = toml::parse(text, path);
  if (!parsed) {
    const std::string_view why = parsed.error().description();
    return failure(path + ":" + std::to_string(parsed.error().source().begin.line) + ": " + std::string(why) +
                   (why.find("value type") == why.npos ? "" : "; text stands in quotes: device = \"cpu\""));
  }
  // Half a layer is never seen: the copy replaces the configuration only when all of it was good.
  config next = c;
  OUTBOARD_TRY(layer(next, path).apply(parsed.table()));
  c = std::move(next);
  return {};
}

}  // namespace outboard
