// faulty_connection: a connection that misbehaves as networks do, for tests of everything above a transport.
// It wraps one end; wrap both for faults in both places. Owner and thread rules as in transport.hh. Not for
// production: with a delay, each end has a thread of its own and copies what it sends.
#pragma once

#include <cstdint>
#include <limits>
#include <memory>

#include "transport/transport.hh"

namespace outboard::transport {

struct faults {
  static constexpr std::uint64_t never = std::numeric_limits<std::uint64_t>::max();

  /// The connection is cut after exactly this many bytes; all of them reach the other side.
  std::uint64_t cut_send_after = never;
  std::uint64_t cut_receive_after = never;

  /// Sent bytes arrive this much later, without holding up the sender: this adds latency and does not limit
  /// bandwidth. Wrapping both ends with half of it each emulates a round-trip time.
  std::chrono::microseconds delay{0};

  /// receive() returns random parts of what it could return, and send() writes in random pieces; most are
  /// small.
  bool short_reads = false;
  bool short_writes = false;
  std::uint64_t seed = 1;
};

std::unique_ptr<connection> make_faulty(std::unique_ptr<connection> inner, const faults& what);

/// A transport whose connections, connected and accepted, have these faults. Each gets its own seed.
std::unique_ptr<transport> make_faulty(std::unique_ptr<transport> inner, const faults& what);

}  // namespace outboard::transport
