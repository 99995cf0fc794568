// The book of identities: from what a connection proves (its credential) to the identity that it belongs to,
// and what that identity may do and use, by the tables [identity] of the configuration. A book does not
// change; a reload makes a new one. Values; any thread.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "backend/identity/memory_page.hh"
#include "backend/identity/rights.hh"
#include "base/config.hh"
#include "base/result.hh"

namespace outboard::backend {

/// What a connection has proven about itself.
struct credential {
  /// "user 1000", "token NAME", "token", "certificate CN=NAME", "anyone": what lists and logs show, and what
  /// a revocation names.
  std::string name;
  std::optional<std::uint32_t> user;  ///< as the kernel reports it
  std::vector<std::uint32_t> groups;  ///< likewise: all groups of the process
};

/// What follows from an identity. Shared by all its sessions until a reload.
struct identity_terms {
  /// The identity's name; without a row of its own, the credential's. Sessions share things within one name.
  std::string name;
  rights may;
  std::vector<std::string> devices;  ///< indices and beginnings of UUIDs; empty: all that are lent
  std::uint32_t sessions = 0, running = 0, waiting = 0;  ///< 0: no limit of its own
  std::uint32_t weight = 100, priority = 0;
  memory_limits memory = {};  ///< `session_host` 0: as limits.host_memory says
  bool operator==(const identity_terms&) const = default;
};
using shared_terms = std::shared_ptr<const identity_terms>;

class identity_book {
 public:
  identity_book() = default;
  /// An error: a member that this machine does not know, or one that two rows have.
  static result<identity_book> make(const config& c);

  /// A token or user before a group; of several groups, the row whose name is first in the alphabet.
  shared_terms terms_of(const credential& who) const;

  /// May this user of the machine connect to local sockets because of a row?
  bool has_row_for(std::uint32_t user, const std::vector<std::uint32_t>& groups) const;
  /// Does any row name users or groups of this machine?
  bool names_local_users() const { return !users_.empty() || !groups_.empty(); }
  std::size_t rows() const { return rows_.size(); }

 private:
  shared_terms row_of(const credential& who) const;

  identity_settings for_all_;
  std::vector<shared_terms> rows_;
  std::map<std::string, shared_terms> tokens_;  ///< by the credential's name
  std::map<std::uint32_t, shared_terms> users_;
  std::multimap<std::uint32_t, shared_terms> groups_;
};

/// The user who runs this process, or root, as the kernel reports it: may do everything.
bool is_local_administrator(const credential& who);

}  // namespace outboard::backend
