// How long the place of a session that has ended stays taken. To begin one costs the server some ten times
// what it costs the client, which may leave at once and come again: so an identity whose sessions are short,
// again and again, begins no more of them in a second than it may have at a time, and a few. Programs that
// really are short do not notice: a number of them is free. Owned by the workers; the daemon's one thread.
#pragma once

#include <chrono>
#include <iterator>
#include <map>
#include <string>

#include "backend/daemon/bounds/bucket.hh"

namespace outboard::backend {

class short_sessions {
 public:
  using clock = bucket::clock;

  /// A session is short that ends before this.
  static constexpr std::chrono::seconds short_life{1};
  /// So many short ones of an identity at once, and so many a second, have no consequence.
  static constexpr double free_at_once = 32, free_a_second = 4;

  /// A session of this identity that began then has ended now. Zero: its place is free at once.
  clock::duration keeps_place(const std::string& account, clock::time_point began, clock::time_point now) {
    if (now - began >= short_life) return {};
    for (auto at = recent_.begin(); at != recent_.end();)
      at = at->second.full(now) ? recent_.erase(at) : std::next(at);
    auto& left = recent_.try_emplace(account, free_at_once, free_a_second).first->second;
    return left.take(now) ? clock::duration{} : began + short_life - now;
  }

 private:
  std::map<std::string, bucket> recent_;  ///< of those that had some recently
};

}  // namespace outboard::backend
