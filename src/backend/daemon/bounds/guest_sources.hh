// Which guests come from which source, and which of them must go when there are too many. A source is what
// one person can easily fill with connections: an IPv4 address, the /64 of an IPv6 address (the smallest part
// that networks hand out), or a user of this machine. Owned by the guests; the daemon's one thread.
//
// The guest that goes is the oldest of the source that has the most, so a flood drops its own connections,
// and the clients of other sources do not notice it. A client that shares the flood's source (behind the same
// NAT) gets in if its hello comes before the source's places have been filled once more.
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

  /// Places for guests of all sources together.
  explicit guest_sources(std::size_t most);

  struct choice {
    guest_id guest = 0;
    std::string why;  ///< for its line in the log
  };
  /// The guest that must go before another one from `source` may come, if any.
  std::optional<choice> in_the_way_of(const std::string& source) const;

  void enter(const std::string& source, guest_id id);
  void leave(const std::string& source, guest_id id);

 private:
  std::size_t most_;
  /// Three quarters of all: one host may start many programs at once, and over a link of 0.1 s all of their
  /// connections are without a hello at the same time. The last quarter is free for others at any time.
  std::size_t most_of_one_;
  std::size_t present_ = 0;
  std::map<std::string, std::set<guest_id>> by_source_;
};

/// The source at the other end of a connected socket; `otherwise` if the socket's kind has none.
std::string source_of(int socket, const std::string& otherwise);

/// A connection's name without what differs between two connections of one peer.
std::string without_port(const std::string& from);

}  // namespace outboard::backend
