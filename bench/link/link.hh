// A link between two machines, emulated between two sockets of one machine. Each byte arrives half a round
// trip after it was sent, and not before the link had time for it. All connections share the link's
// bandwidth; each direction has its own. Nothing is lost or sent twice, and there is no slow start: TCP's own
// behaviour on a long link is not emulated. Owned by main; each direction of a connection has a thread.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <string>

namespace bench {

using nanoseconds = std::int64_t;

/// Monotonic.
nanoseconds now();

struct link_shape {
  nanoseconds one_way = 0;
  double bytes_per_nanosecond = 0;  ///< 0: no limit
};

/// The load of one direction. Any thread.
class pacer {
 public:
  explicit pacer(const link_shape& shape) : shape_(shape) {}

  /// The time when the last of these bytes is at the other end.
  nanoseconds arrival(nanoseconds came, std::size_t bytes);
  /// The time when more bytes may enter: at most as many wait at the entrance as a switch would hold.
  nanoseconds next_entry() const;
  /// How many bytes to take at once, because other connections want to enter, too; and how many arrive
  /// together.
  std::size_t piece() const;
  std::size_t packet() const;

 private:
  std::size_t carried(nanoseconds in, std::size_t least) const;

  const link_shape shape_;
  std::atomic<nanoseconds> busy_until_{0};
};

/// A socket that listens on, or is connected to, 127.0.0.1 or another "host:port" by number. Ends the program
/// on failure.
int listen_at(const std::string& address);
int connect_to(const std::string& address);
std::string address_of(int socket);

/// Accepts connections indefinitely, and forwards each to a new connection to `server`.
[[noreturn]] void serve(int listener, const std::string& server, const link_shape& shape);

}  // namespace bench
