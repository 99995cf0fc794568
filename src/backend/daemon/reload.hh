// What a server takes from its configuration anew while it runs: identities, limits, local users, the audit
// file. It is checked as a whole before anything changes. Pure functions; any thread.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "backend/daemon/guests.hh"
#include "backend/identity/identity_book.hh"
#include "base/config.hh"
#include "base/result.hh"

namespace outboard::backend {

struct live_settings {
  identity_book identities;
  local_users allowed;
  limit_settings limits;
  std::string audit_file;
};

/// An error says what cannot be: a user, a group, or a device that is not there, a member of two identities.
/// `uuids`: of the devices lent.
result<live_settings> live_settings_of(const config& c, std::span<const std::string> uuids);

/// The keys whose values differ and that count only from the server's next start on.
std::vector<std::string> kept_until_restart(const config& was, const config& is);

}  // namespace outboard::backend
