// faulty_connection: a connection that misbehaves as networks do, for tests of everything above a transport.
// It wraps one end; wrap both for faults in both places. Owner and thread rules as in transport.hh. Not for
// production: with a delay each end has a thread of its own and copies what it sends.
#pragma once

#include <cstdint>
#include <limits>
#include <memory>

#include "transport/transport.hh"

namespace outboard::transport {

struct faults {
  static constexpr std::uint64_t never = std::numeric_limits<std::uint64_t>::max();

  /// The connection is cut as soon as this many bytes went through: exactly so many reach the other side.
  std::uint64_t cut_send_after = never;
  std::uint64_t cut_receive_after = never;

  /// What is sent arrives this much later, without holding up the sender: a long line, not a slow one.
  /// Wrapping both ends with half of it each emulates a round-trip time.
  std::chrono::microseconds delay{0};

  /// receive() gives random parts of what it could, send() writes in random pieces; most are small.
  bool short_reads = false;
  bool short_writes = false;
  std::uint64_t seed = 1;
};

std::unique_ptr<connection> make_faulty(std::unique_ptr<connection> inner, const faults& what);

/// A transport whose connections, made and accepted, have these faults; each gets a seed of its own.
std::unique_ptr<transport> make_faulty(std::unique_ptr<transport> inner, const faults& what);

}  // namespace outboard::transport
