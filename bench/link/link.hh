// link: a line between two machines, emulated between two sockets of one. Each byte arrives half a round trip
// after it came and not before the line had time for it: the line is one for all connections, a direction
// by itself. Nothing is lost or sent twice, and there is no slow start: TCP's own behaviour on a long line is
// not emulated. Owned by main; each direction of a connection has a thread.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <string>

namespace bench {

using nanoseconds = std::int64_t;

/// By the clock that nobody sets.
nanoseconds now();

struct line {
  nanoseconds one_way = 0;
  double bytes_per_nanosecond = 0;  ///< 0: as fast as it goes
};

/// How busy one direction is. Any thread.
class pacer {
 public:
  explicit pacer(const line& l) : line_(l) {}

  /// When the last of these bytes is at the other end.
  nanoseconds arrival(nanoseconds came, std::size_t bytes);
  /// When more may be put in: what waits at the entrance is at most what a switch would hold.
  nanoseconds next_entry() const;
  /// As much as should be taken at once, for other connections want to enter, too; and what arrives as one.
  std::size_t piece() const;
  std::size_t packet() const;

 private:
  std::size_t carried(nanoseconds in, std::size_t least) const;

  const line line_;
  std::atomic<nanoseconds> busy_until_{0};
};

/// A socket that listens on, or is connected to, 127.0.0.1 or another "host:port" by number. Ends the program
/// on failure.
int listen_at(const std::string& address);
int connect_to(const std::string& address);
std::string address_of(int socket);

/// Takes connections for ever, and passes each on to a new one to `server`.
[[noreturn]] void serve(int listener, const std::string& server, const line& l);

}  // namespace bench
