#include "backend/daemon/reload.hh"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "backend/daemon/device_shape.hh"
#include "backend/identity/local_names.hh"
#include "base/settings.hh"

namespace outboard::backend {
namespace {

status check_devices(const std::string& key, const std::vector<std::string>& wanted,
                     std::span<const std::string> uuids) {
  if (wanted.empty()) return {};
  const auto chosen = choose_devices(wanted, uuids);
  return chosen.ok() ? status{} : failure(fmt::format("{}: {}", key, chosen.error().message));
}

bool is_taken_up(const setting& s) {
  // Workers get it at their start.
  if (s.key() == "limits.keepalive_seconds") return false;
  constexpr std::array<std::string_view, 2> keys{"allow_users", "audit_file"};
  return s.section == "identity" || s.section == "limits" ||
         (s.section.empty() && std::ranges::find(keys, s.name) != keys.end());
}

/// By names and numbers; "*" stands for everybody.
status resolve_users(const std::vector<std::string>& names, local_users& allowed) {
  for (const std::string& name : names) {
    if (name == "*") {
      allowed.any = true;
      continue;
    }
    const auto number = user_named(name);
    if (!number) return failure(fmt::format("allow_users: there is no user \"{}\"", name));
    allowed.users.push_back(*number);
  }
  return {};
}

}  // namespace

result<live_settings> live_settings_of(const config& c, std::span<const std::string> uuids) {
  live_settings made;
  auto book = identity_book::make(c);
  if (!book.ok()) return std::move(book).error();
  made.identities = std::move(*book);
  OUTBOARD_TRY(check_devices("identity.devices", c.identity.devices, uuids));
  for (const named_identity& row : c.identities)
    OUTBOARD_TRY(check_devices(fmt::format("identity.{}.devices", row.name), row.is.devices, uuids));
  OUTBOARD_TRY(resolve_users(c.allow_users, made.allowed));
  made.limits = c.limits;
  made.audit_file = c.audit_file;
  return made;
}

std::vector<std::string> kept_until_restart(const config& was, const config& is) {
  std::vector<std::string> keys;
  for (const setting& s : all_settings()) {
    const bool ours = s.is_for(reader::server) || s.is_for(reader::worker);
    if (ours && !is_taken_up(s) && s.text(was) != s.text(is)) keys.push_back(s.key());
  }
  return keys;
}

}  // namespace outboard::backend
