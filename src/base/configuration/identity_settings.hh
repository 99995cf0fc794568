// Tables [identity.NAME] of the server's configuration: who belongs to one, what it may do and how much it
// may have. Rows are constants, tables values; functions are pure. Any thread.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/configuration/given_value.hh"
#include "base/result.hh"

namespace outboard {

/// What an identity may do.
enum class right : unsigned {
  run = 1,             ///< begin sessions, ask NVML
  list_own = 2,        ///< see its own sessions in lists
  list_all = 4,        ///< see everybody's
  checkpoint_own = 8,  ///< lock and checkpoint its own sessions
  administer = 16,     ///< have the configuration read again
};
/// Several of them.
using rights = unsigned;
constexpr rights all_rights = 31;
constexpr bool allows(rights given, right one) { return (given & static_cast<unsigned>(one)) != 0; }
/// "run", "list-own", ...
std::string_view name(right r);
/// "run, list-own"; none: "none".
std::string rights_text(rights given);

/// The table for everybody whom no other names.
inline constexpr std::string_view default_identity = "default";

struct identity_settings {
  std::string name;
  // Who: of local sockets, by name or number; of named tokens, the name; of certificates, the subject or an
  // alternative name.
  std::vector<std::string> users, groups, tokens, certificates;
  std::optional<std::uint32_t> sessions;       ///< that run at once
  std::optional<std::uint32_t> waiting;        ///< that wait for that
  std::optional<std::uint64_t> device_memory;  ///< bytes of each device that its sessions hold together
  std::optional<std::uint64_t> host_memory;    ///< bytes of the server's own that each session holds
  std::optional<std::uint32_t> cpu_weight;     ///< of each session's worker, beside others'
  std::vector<std::string> devices;            ///< as shape_settings::visible, of those lent; empty: all
  std::optional<rights> may;                   ///< nothing: as without tables
  std::string origin;                          ///< "FILE:LINE" that it begins at
};

/// A key of such a table.
struct identity_key {
  std::string_view name;
  std::string_view accepted, meaning;  ///< for errors and documents
  std::string_view example;            ///< a value, as in a file
  bool (*set)(identity_settings& i, const given_value& value);
  std::string (*text)(const identity_settings& i);  ///< as `outboard settings` shows it; empty: not set
};
std::span<const identity_key> identity_keys();

/// "lab-a": what may be a table's name.
bool is_identity_name(std::string_view name);

/// Nobody is in two tables, each table but the default names somebody, and that one nobody. Users and groups
/// are compared as they are written.
status check_identities(std::span<const identity_settings> tables);

}  // namespace outboard
