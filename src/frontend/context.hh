// What the front-end knows of a context: enough to answer its state without asking. One for each primary
// context for the life of the process (handles stay stable over reset), one for each created context until it
// is destroyed. Any thread; counters and codes are atomic, the rest is set before the handle is handed out.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <memory>

#include "frontend/activity.hh"
#include "frontend/copying/data_connections.hh"
#include "frontend/copying/later_area.hh"
#include "frontend/copying/staging_area.hh"
#include "frontend/handle_table.hh"
#include "frontend/memory/slab.hh"

namespace outboard::frontend {

struct context_state final : object {
  std::uint64_t handle = 0;
  std::int32_t device = 0;
  bool primary = false;
  std::atomic<int> retained{0};         ///< primary: outstanding cuDevicePrimaryCtxRetain
  std::atomic<bool> active{false};      ///< calls may run in it
  std::atomic<bool> died{false};        ///< at least once
  std::atomic<bool> lost{false};        ///< reset after a fault, on a device that does not recover from that
  std::atomic<std::int32_t> sticky{0};  ///< every later call's code, once a kernel has faulted
  std::atomic<unsigned> flags{0};
  unsigned api_version = 3020;
  std::uint64_t id = 0;  ///< cuCtxGetId
  std::atomic<int> cache_config{0}, shared_config{0};
  std::array<std::atomic<std::uint64_t>, 16> limits{};  ///< by CUlimit; ~0: the driver does not know it
  /// primary: handles of the device's default pool and of the one that the program has set; 0: not yet
  std::atomic<std::uint64_t> default_pool{0}, current_pool{0};
  std::array<std::atomic<std::uint64_t>, 2> granularity{};  ///< primary: of virtual memory, once asked
  idle_mark idle, legacy_idle;                              ///< all of it; its legacy default stream
  slab_allocator small;                                     ///< allocations below a granule
  staging_area staging;                                     ///< of large copies
  landing_block landing;                                    ///< of short ones to the host
  data_connections to_device, to_host;                      ///< of large copies, where no memory is shared
  later_copies later;                                       ///< to the host, where nobody waits for them
  later_area later_blocks;                                  ///< of those, with its lock
  /// made of a green context: that one's handle, and the primary context that owns what is made here
  std::uint64_t green = 0;
  context_state* owner = nullptr;

  /// The context or the worker has gone: what it copies next needs new connections. Any thread.
  void abandon_connections() {
    to_device.abandon();
    to_host.abandon();
    const std::lock_guard lock(later.use);
    later.wanted = 0, later.tried = false;
  }
};

}  // namespace outboard::frontend
