// Blocks of pools that the program has freed in the order of a stream and whose free has not been sent. An
// allocation of the same size on the same stream of the same pool gets one back, as it would from the driver,
// without asking the server. Everything by which the program could notice the difference sends them first
// (request): every request that waits for an answer, except an allocation that finds nothing, and posts by
// which another stream, a graph or a host function learns of the stream's work. Launches, copies and fills go
// before them, because for those a free that comes later makes no difference. Any thread.
#pragma once

#include <atomic>
#include <cstdint>
#include <mutex>
#include <optional>
#include <vector>

#include "api/cuda/functions.hh"
#include "frontend/memory/address_table.hh"
#include "frontend/session.hh"

namespace outboard::frontend {

struct freed_block {
  memory_block block;
  std::uint64_t stream = 0;           ///< handle; 0: the legacy default one
  std::uint64_t running_context = 0;  ///< where the free is to run
};

class freed_blocks {
 public:
  /// How many may wait: programs free a handful before they allocate again.
  static constexpr std::size_t most = 64;
  static constexpr std::uint64_t spared = 32u << 20;

  bool any() const { return any_.load(std::memory_order_acquire); }

  /// False: there are `most` already.
  bool keep(const freed_block& freed);

  /// The block freed last of those that fit `wanted`: pool, context and size of the block, and the stream.
  std::optional<memory_block> take(const freed_block& wanted);

  /// Before an allocation that found nothing here: the device is not to take much more memory for it than it
  /// would have. Posts the oldest frees, so that no more than `spared` bytes are left.
  void make_room(session& server, std::uint32_t lane) { send_down_to(exact_ ? 0 : spared, server, lane); }
  /// From now on make_room() leaves nothing: the program looks at what a pool has used at most.
  void be_exact() { exact_.store(true, std::memory_order_relaxed); }

  /// Posts their frees. When it returns, those of every free that had returned before have gone out,
  /// whichever thread sent them.
  void send(session& server, std::uint32_t lane) { send_down_to(0, server, lane); }

 private:
  void send_down_to(std::uint64_t bytes, session& server, std::uint32_t lane);

  std::mutex mutex_;  // held while sending: who finds nothing left must find it sent
  std::vector<freed_block> blocks_;
  std::vector<std::byte> bytes_;
  std::atomic<bool> any_{false}, exact_{false};
};

}  // namespace outboard::frontend
