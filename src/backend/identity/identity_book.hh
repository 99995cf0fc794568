// Who a client is to this server, and what that identity may do and have, by the tables [identity.NAME] of
// the configuration. A person that no table names is an identity for itself, with what [identity.default]
// says. Made at start and whenever the configuration is read again; shares stay as they are as long as
// somebody has them. Owned by the daemon; its one thread.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/configuration/identity_settings.hh"
#include "base/result.hh"

namespace outboard::backend {

/// What a client has proven, or the kernel says of it.
struct proven_identity {
  /// "user 1000", "token ci", "certificate CN=alice", "token" (the one for all), "anyone". What sessions
  /// share, lock and keep stays among those of one.
  std::string person;
  std::optional<std::uint32_t> user = std::nullopt;  ///< of a local socket
  std::vector<std::uint32_t> groups = {};            ///< likewise
  /// It came over a network: MUNGE, and not this machine's kernel, says which user it is.
  bool by_munge = false;
  std::vector<std::string> also = {};  ///< alternative names of a certificate: "certificate DNS:a.lab"
};

/// What one identity may do and have. Persons of one table have one together.
struct share {
  std::string account;     ///< counts are kept by it, which no other table or person has
  std::string table = {};  ///< the name of its table; empty: none names it
  /// Nothing: what is fair among all (seats.hh).
  std::optional<std::uint32_t> sessions = std::nullopt, waiting = std::nullopt;
  /// Bytes of each device that its sessions hold together; nothing: no limit.
  std::optional<std::uint64_t> device_memory = std::nullopt;
  /// Of the server's own memory, and of its processors, for each session; nothing: no limit, the usual.
  std::optional<std::uint64_t> host_memory = std::nullopt;
  std::optional<std::uint32_t> cpu_weight = std::nullopt;
  /// UUIDs in the order that its programs see; nothing: all that are lent.
  std::optional<std::vector<std::string>> devices = std::nullopt;
  rights may = 0;

  /// As lists show it: the table's name, else the person.
  const std::string& name() const { return table.empty() ? account : table; }
};
using share_ptr = std::shared_ptr<const share>;

/// The reason of an error that says which right is missing.
inline constexpr int no_right = 1;
/// May `person`, whose share this is, do that? Else the error, with the reason `no_right`, says what it may
/// do and where that is set.
status check_right(const std::string& person, const share& has, right wanted);

class identity_book {
 public:
  /// The UUIDs of the lent devices that a list of `devices` names; an error: there is no such device.
  using device_finder = std::function<result<std::vector<std::string>>(const std::vector<std::string>&)>;

  identity_book() = default;
  /// An error: a user or group that there is not, or that two tables have by different names, or a device
  /// that there is not; it names the line.
  static result<identity_book> make(std::span<const identity_settings> tables, const device_finder& devices);

  /// An error: its groups are in several tables. `without_tables` is what persons may do whom no table gives
  /// rights. Root and this process's own user may do everything over local sockets.
  result<share_ptr> find(const proven_identity& who, rights without_tables) const;
  bool has_tables() const { return !tables_.empty(); }

 private:
  struct table {
    share has;  ///< `may` counts if `has_rights`
    bool has_rights = false;
  };
  using place = std::size_t;  ///< in tables_
  status add_persons(const identity_settings& from, place at);
  result<std::optional<place>> place_of(const proven_identity& who) const;

  std::vector<table> tables_;
  std::map<std::string, place, std::less<>> by_person_;  ///< tokens and certificates
  std::map<std::uint32_t, place> by_user_, by_group_;
  std::optional<place> default_;
};

}  // namespace outboard::backend
