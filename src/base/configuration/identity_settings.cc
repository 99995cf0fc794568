#include "base/configuration/identity_settings.hh"

#include <algorithm>
#include <array>
#include <map>

#include "base/joined.hh"

namespace outboard {
namespace {

struct named_right {
  right value;
  std::string_view name;
};
constexpr std::array<named_right, 5> right_names{{{right::run, "run"},
                                                  {right::list_own, "list-own"},
                                                  {right::list_all, "list-all"},
                                                  {right::checkpoint_own, "checkpoint-own"},
                                                  {right::administer, "administer"}}};

/// Texts that are there, each once; an empty list names nobody and is a mistake.
bool set_names(std::vector<std::string>& names, const given_value& v) {
  auto list = texts_in(v);
  if (!list || list->empty()) return false;
  for (auto at = list->begin(); at != list->end(); ++at) {
    if (at->empty() || std::find(list->begin(), at, *at) != at) return false;
  }
  names = std::move(*list);
  return true;
}

bool set_number(std::optional<std::uint32_t>& field, const given_value& v, std::int64_t least) {
  const auto number = number_in(v);
  if (!number || *number < least || *number > 100000) return false;
  field = static_cast<std::uint32_t>(*number);
  return true;
}

std::string number_text(const std::optional<std::uint32_t>& field) {
  return field ? std::to_string(*field) : "";
}

/// As of devices.memory: with less no program starts.
bool set_memory(std::optional<std::uint64_t>& field, const given_value& v) {
  const auto size = size_in(v);
  if (!size || *size < (64u << 20) || *size > (1ull << 44)) return false;
  field = *size;
  return true;
}

std::string memory_text(const std::optional<std::uint64_t>& field) {
  return field ? exact_size_text(*field) : "";
}

/// The kernel knows no others.
bool set_weight(identity_settings& i, const given_value& v) {
  const auto number = number_in(v);
  if (!number || *number < 1 || *number > 10000) return false;
  i.cpu_weight = static_cast<std::uint32_t>(*number);
  return true;
}

/// An empty list is one: whoever has no right is locked out.
bool set_rights(identity_settings& i, const given_value& v) {
  const auto list = texts_in(v);
  if (!list) return false;
  rights given = 0;
  for (const std::string& word : *list) {
    const auto* const at = std::ranges::find(right_names, word, &named_right::name);
    if (at == right_names.end()) return false;
    given |= static_cast<unsigned>(at->value);
  }
  i.may = given;
  return true;
}

constexpr identity_key keys[]{
    {"users", "a list of user names or numbers", "who belongs to it of those who come over local sockets",
     "[\"alice\"]", [](auto& i, const given_value& v) { return set_names(i.users, v); },
     [](const auto& i) { return joined(i.users, ","); }},
    {"groups", "a list of names or numbers of groups",
     "likewise, whoever is in one of these groups by the kernel's word and is not named in `users` of a "
     "table",
     "[\"lab\"]", [](auto& i, const given_value& v) { return set_names(i.groups, v); },
     [](const auto& i) { return joined(i.groups, ","); }},
    {"tokens", "a list of names of named tokens", "whoever comes over a network with one of these tokens",
     "[\"ci\"]", [](auto& i, const given_value& v) { return set_names(i.tokens, v); },
     [](const auto& i) { return joined(i.tokens, ","); }},
    {"certificates",
     "a list of subjects of certificates, as \"CN=alice,O=lab\", or of their alternative names, as "
     "\"DNS:alice.lab\", \"email:alice@lab\" or \"URI:spiffe://lab/alice\"",
     "whoever shows such a certificate; its subject counts first", "[\"CN=alice,O=lab\"]",
     [](auto& i, const given_value& v) { return set_names(i.certificates, v); },
     [](const auto& i) { return joined(i.certificates, " "); }},
    {"sessions", "a number from 1 to 100000", "sessions that run at once; its further ones wait", "4",
     [](auto& i, const given_value& v) { return set_number(i.sessions, v, 1); },
     [](const auto& i) { return number_text(i.sessions); }},
    {"waiting", "a number from 0 to 100000", "sessions that wait; more are refused", "8",
     [](auto& i, const given_value& v) { return set_number(i.waiting, v, 0); },
     [](const auto& i) { return number_text(i.waiting); }},
    {"device_memory", "a size like \"8GiB\", from 64MiB to 16TiB",
     "how much memory of each device its sessions hold together; each sees no more than that", "\"16GiB\"",
     [](auto& i, const given_value& v) { return set_memory(i.device_memory, v); },
     [](const auto& i) { return memory_text(i.device_memory); }},
    {"host_memory", "a size like \"8GiB\", from 64MiB to 16TiB",
     "how much of the server's own memory each of its sessions may take, and 512 MiB beside that for its "
     "worker; above it the kernel ends that session; needs worker.cgroup",
     "\"8GiB\"", [](auto& i, const given_value& v) { return set_memory(i.host_memory, v); },
     [](const auto& i) { return memory_text(i.host_memory); }},
    {"cpu_weight", "a number from 1 to 10000",
     "how much of busy processors each of its sessions gets beside others', whose weight is 100 by default; "
     "needs worker.cgroup",
     "200", set_weight, [](const auto& i) { return number_text(i.cpu_weight); }},
    {"devices", "a list of indices (\"0\") and beginnings of UUIDs (\"GPU-1a2b\"), each device once",
     "which of the lent devices CUDA programs get, in the order that they see; default: all", "[\"0\"]",
     [](auto& i, const given_value& v) { return set_names(i.devices, v); },
     [](const auto& i) { return joined(i.devices, ","); }},
    {"rights", "a list of \"run\", \"list-own\", \"list-all\", \"checkpoint-own\", \"administer\"",
     "what it may do; [] locks it out", "[\"run\", \"list-own\", \"checkpoint-own\"]", set_rights,
     [](const auto& i) { return i.may ? rights_text(*i.may) : std::string(); }},
};

/// One way to name somebody.
struct naming {
  std::string_view word;
  const std::vector<std::string> identity_settings::*names;
};
constexpr std::array<naming, 4> namings{{{"user", &identity_settings::users},
                                         {"group", &identity_settings::groups},
                                         {"token", &identity_settings::tokens},
                                         {"certificate", &identity_settings::certificates}}};

}  // namespace

std::string_view name(right r) { return std::ranges::find(right_names, r, &named_right::value)->name; }

std::string rights_text(rights given) {
  std::vector<std::string_view> words;
  for (const named_right& each : right_names) {
    if (allows(given, each.value)) words.push_back(each.name);
  }
  return words.empty() ? "none" : joined(words, ", ");
}

std::span<const identity_key> identity_keys() { return keys; }

bool is_identity_name(std::string_view name) {
  return !name.empty() && name.size() <= 64 && std::ranges::all_of(name, [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '.' ||
           c == '_' || c == '-';
  });
}

status check_identities(std::span<const identity_settings> tables) {
  for (const naming& way : namings) {
    std::map<std::string_view, const identity_settings*> seen;
    for (const identity_settings& table : tables) {
      for (const std::string& one : table.*way.names) {
        const auto [at, is_new] = seen.emplace(one, &table);
        if (is_new) continue;
        return failure(table.origin + ": " + std::string(way.word) + " \"" + one + "\" is in [identity." +
                       table.name + "] and in [identity." + at->second->name + "] (" + at->second->origin +
                       "); nobody belongs to two");
      }
    }
  }
  for (const identity_settings& table : tables) {
    const bool names_somebody =
        std::ranges::any_of(namings, [&](const naming& way) { return !(table.*way.names).empty(); });
    const bool is_default = table.name == default_identity;
    if (names_somebody == !is_default) continue;
    return failure(table.origin + ": [identity." + table.name + "] " +
                   (is_default
                        ? "is for everybody whom no other table names: leave users, groups, tokens and "
                          "certificates out"
                        : "names nobody: give it users, groups, tokens or certificates"));
  }
  return {};
}

}  // namespace outboard
