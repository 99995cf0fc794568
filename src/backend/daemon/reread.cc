#include "backend/daemon/reread.hh"

#include <algorithm>
#include <array>
#include <string_view>

#include "base/configuration/settings.hh"

namespace outboard::backend {
namespace {

/// Beside the tables [identity.NAME].
constexpr std::array<std::string_view, 6> count_now{
    "allow_users", "audit_file", "limits.drain_seconds", "limits.running", "limits.sessions", "log"};

}  // namespace

void take_what_counts_now(config& running, const config& read) {
  running.allow_users = read.allow_users;
  running.audit_file = read.audit_file;
  running.limits.drain_seconds = read.limits.drain_seconds;
  running.limits.running = read.limits.running;
  running.limits.sessions = read.limits.sessions;
  running.log = read.log;
  running.identities = read.identities;
}

std::vector<std::string> changed_for_the_next_start(const config& before, const config& read) {
  std::vector<std::string> keys;
  for (const setting& s : all_settings()) {
    const bool counts_now = std::ranges::find(count_now, s.key()) != count_now.end();
    if (s.is_for(reader::server) && !counts_now && s.text(before) != s.text(read)) keys.push_back(s.key());
  }
  if (before.plugins != read.plugins) keys.emplace_back("transport");
  return keys;
}

}  // namespace outboard::backend
