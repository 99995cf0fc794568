// What each client may do and have on this server now: the tables of the configuration, and the defaults for
// clients that they do not name. If nothing tells clients apart (no table, named token, further user of local
// sockets or authority for certificates), all are one identity: it may take every place and sees every
// session. Owned by the daemon; its one thread.
#pragma once

#include <span>
#include <string>

#include "backend/identity/identity_book.hh"
#include "base/configuration/config.hh"

namespace outboard::backend {

class identities {
 public:
  /// The tables of a configuration for these devices, in the order in which they are lent.
  static result<identity_book> read(const config& c, std::span<const std::string> uuids);

  void take(identity_book book) { book_ = std::move(book); }
  /// Does something tell clients apart besides the tables?
  void set_apart(bool apart) { apart_ = apart; }
  bool several() const { return apart_ || book_.has_tables(); }

  /// An error, with the reason `no_right`: its groups are in several tables.
  result<share_ptr> find(const proven_identity& who) const;
  /// The same; an error with that reason, too, where it lacks this right.
  result<share_ptr> allowed(const proven_identity& who, right wanted) const;

 private:
  identity_book book_;
  bool apart_ = false;
};

}  // namespace outboard::backend
