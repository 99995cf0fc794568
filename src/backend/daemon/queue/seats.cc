#include "backend/daemon/queue/seats.hh"

#include <fmt/format.h>

namespace outboard::backend {
namespace {

/// Is one more of `most` places fair for who has `mine` of the `taken` ones?
bool is_fair(std::size_t most, std::size_t taken, std::size_t mine) {
  if (taken >= most) return false;
  return mine < 2 * (most - taken) - 1;
}

std::string run(std::size_t running) {
  return fmt::format("{} {}", running, running == 1 ? "session runs" : "sessions run");
}

std::string run_and_wait(std::size_t running, std::size_t waiting) {
  return fmt::format("{} and {} {}", run(running), waiting, waiting == 1 ? "waits" : "wait");
}

/// As its administrator knows it.
std::string shown(const share& s) { return s.table.empty() ? s.account : "[identity." + s.table + "]"; }

}  // namespace

bool seats::may_run(const share& s) const {
  const held mine = held_by(s.account);
  if (s.sessions && mine.running >= *s.sessions) return false;
  if (most_.running == 0) return true;
  if (s.sessions || !several_) return running_ < most_.running;
  return is_fair(most_.running, running_, mine.running);
}

std::string seats::refusal_of(const share& s) const {
  const std::size_t taken = running_ + waiting_;
  if (taken >= most_.sessions) {
    if (waiting_ == 0) return fmt::format("{}, which is the limit", run(running_));
    return fmt::format("{}; the limit of both is {}", run_and_wait(running_, waiting_), most_.sessions);
  }
  const held mine = held_by(s.account);
  const std::string of_mine = fmt::format("of {} {}", shown(s), run_and_wait(mine.running, mine.waiting));
  if (s.waiting && mine.waiting >= *s.waiting && !may_run(s)) {
    const std::string may =
        s.sessions ? fmt::format("it may run {}", *s.sessions) : "no further one may run now";
    return fmt::format("{}, and {} and have {} wait: end one of them, or come again when one has ended",
                       of_mine, may, *s.waiting);
  }
  // Who has both limits of its own is not measured by others.
  if ((s.sessions && s.waiting) || !several_) return {};
  if (is_fair(most_.sessions, taken, mine.running + mine.waiting)) return {};
  return fmt::format(
      "{}, and while {} of this server's {} places are free no identity gets more: end one of them, or ask "
      "for `sessions` and `waiting` of its own in the server's configuration",
      of_mine, most_.sessions - taken, most_.sessions);
}

void seats::ends(const share& s) {
  --by_account_.at(s.account).running, --running_;
  drop_if_empty(s.account);
}

void seats::leaves(const share& s) {
  --by_account_.at(s.account).waiting, --waiting_;
  drop_if_empty(s.account);
}

seats::held seats::held_by(const std::string& account) const {
  const auto at = by_account_.find(account);
  return at == by_account_.end() ? held{} : at->second;
}

void seats::drop_if_empty(const std::string& account) {
  const auto at = by_account_.find(account);
  if (at->second.running == 0 && at->second.waiting == 0) by_account_.erase(at);
}

}  // namespace outboard::backend
