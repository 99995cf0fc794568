// Which guests come from which source, and which of them must go when there are too many. A source is what
// one person can easily fill with connections: an IPv4 address, the /64 of an IPv6 address (the smallest part
// that networks hand out), a user of this machine. Owned by the guests; the daemon's one thread.
//
// The guest that goes is the oldest of the source that has the most, so a flood drops its own connections,
// and the clients of other sources do not notice it. A client of the same source (behind the same NAT) gets
// in if its hello comes before the source's limit has been filled once more: at a limit of 192 and 1,000
// connections a second with a round trip of up to 0.19 s, at 9,000 with one of 0.02 s. Other choices were
// simulated, with 192 places, connections that stay and never say anything, and clients with round trips of
// 1, 20 and 100 ms:
// - the newest goes, or nobody and the newcomer is refused: a few percent get in, at any round trip;
// - a random one goes: nobody is shut out for certain, but at 1,000/s only half of those with 100 ms get in,
//   at 9,000/s 3 % (oldest: all, and none);
// - half of the places are kept for 0.25 s each: 16 % of those with 100 ms get in at 3,000/s (oldest: 1 %),
//   but at 9,000/s only 7 % of those with 20 ms (oldest: 78 %);
// - those go first that have sent nothing: an honest client, too, sends nothing for one round trip, and a
//   flood that sends one byte on each connection then shuts everybody out at 50 connections a second.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>

namespace outboard::backend {

class guest_sources {
 public:
  using guest_id = std::uint64_t;  ///< later guests have higher numbers

  explicit guest_sources(std::size_t most);
  /// Guests that are too many then stay until others come.
  void set_most(std::size_t most);

  struct choice {
    guest_id guest = 0;
    std::string why;  ///< for its line in the log
  };
  /// The guest that must go before another one from `source` may come, if any.
  std::optional<choice> in_the_way_of(const std::string& source) const;

  void enter(const std::string& source, guest_id id);
  void leave(const std::string& source, guest_id id);

 private:
  std::size_t most_ = 0;
  /// Three quarters of all: one host may start many programs at once, and over a link of 0.1 s all of their
  /// connections are without a hello at the same time. The last quarter is free for others at any time.
  std::size_t most_of_one_ = 0;
  std::size_t present_ = 0;
  std::map<std::string, std::set<guest_id>> by_source_;
};

/// Returns the source at the other end of a socket; `otherwise`, if the socket's kind has none.
std::string source_of(int socket, const std::string& otherwise);

}  // namespace outboard::backend
