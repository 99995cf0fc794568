// All memory that kernels and copies of the cpu device may touch: cuMemAlloc blocks, virtual memory
// (reservations, physical allocations, mappings), managed and host memory, and the accounts of it. Fresh
// device memory is zero. Any thread; owned by the machine. Look-ups by address are O(log n) and share a lock.
//
// What is freed while kernels run stays readable until they end (their bug, not a crash): cuMemAlloc's range
// is never unmapped, an unmapped range keeps scratch pages, and ranges are given back to the system only when
// every flight that could know them has ended.
#pragma once

#include <condition_variable>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <shared_mutex>

#include "api/cuda/headers.hh"
#include "base/fd.hh"
#include "base/result.hh"
#include "device/cpu/memory/range_allocator.hh"
#include "ptx/run/executor.hh"

namespace outboard::device::cpu {

enum class memory_kind { device, managed, host, registered, mapped, pooled };

/// One accessible block: an allocation, a mapping with access, a piece of host memory.
struct region {
  std::uint64_t begin = 0, size = 0;
  memory_kind kind = memory_kind::device;
  std::uint64_t owner = 0;  ///< context id; 0: no context (virtual memory)
  std::uint64_t id = 0;     ///< unique in the device's life (CU_POINTER_ATTRIBUTE_BUFFER_ID)
  unsigned flags = 0;       ///< of the call that made it
  bool readable = true, writable = true;
  std::uint64_t reserved = 0;  ///< device, managed: bytes taken from the range, >= size
  std::uint64_t physical = 0;  ///< mapped: handle
  std::uint64_t pool = 0;      ///< pooled: handle
  bool leaving = false;        ///< freed in stream order, which has not come to it yet
};

class memory final : public ptx::address_space {
 public:
  static constexpr std::uint64_t granularity = 2u << 20;
  static constexpr std::uint64_t alignment = 512;

  static result<std::unique_ptr<memory>> create(std::uint64_t total);
  ~memory() override;

  bool find(std::uint64_t address, ptx::memory_range& out) const override;
  bool nearest(std::uint64_t address, ptx::memory_range& out) const override;
  std::optional<region> lookup(std::uint64_t address) const;
  /// Every byte of the range may be accessed (write: and written) by the device.
  bool accessible(std::uint64_t address, std::uint64_t size, bool write) const;
  std::uint64_t total() const { return total_; }
  std::uint64_t used() const;

  /// kind: device or managed. `align` above 512 only for module variables.
  CUresult allocate(std::uint64_t size, std::uint64_t align, memory_kind kind, std::uint64_t owner,
                    unsigned flags, std::uint64_t& out);
  CUresult release(std::uint64_t address);
  /// A release in stream order begins. False: it has begun, or there is no such block.
  bool leave(std::uint64_t address, std::uint64_t id);

  /// Memory of a pool: whole granules, and blocks that the pool cuts out of them.
  CUresult take_granules(std::uint64_t size, std::uint64_t& out);
  void give_back_granules(std::uint64_t address, std::uint64_t size);
  void place(region block);  ///< gives it an id
  /// Forgets the block that starts here; id 0 stands for any. False: it is not there. Its bytes become zero.
  bool displace(std::uint64_t address, std::uint64_t id);
  /// The same for memory of a file that processes share: its bytes are left, or given back to the system.
  bool displace_shared(std::uint64_t address, std::uint64_t id, bool clear_it);
  /// Takes bytes into the account and out of it: memory that is not of the arena.
  bool charge(std::uint64_t size);
  void discharge(std::uint64_t size);
  void await_flights() { wait_for_flights(); }

  CUresult host_allocate(std::uint64_t size, std::uint64_t owner, unsigned flags, std::uint64_t& out);
  CUresult host_release(std::uint64_t address);
  CUresult host_register(std::uint64_t address, std::uint64_t size, std::uint64_t owner, unsigned flags);
  CUresult host_unregister(std::uint64_t address);

  CUresult reserve(std::uint64_t size, std::uint64_t align, std::uint64_t hint, std::uint64_t& out);
  CUresult unreserve(std::uint64_t address, std::uint64_t size);
  CUresult create_physical(std::uint64_t size, const CUmemAllocationProp& properties, std::uint64_t& out);
  CUresult retain_physical(std::uint64_t address, std::uint64_t& out);
  CUresult release_physical(std::uint64_t handle);
  CUresult physical_properties(std::uint64_t handle, CUmemAllocationProp& out) const;
  /// A descriptor of memory that was made to be shared (or of another process's).
  CUresult export_physical(std::uint64_t handle, unique_fd& out) const;
  CUresult import_physical(int fd, std::uint64_t& out);
  CUresult map(std::uint64_t address, std::uint64_t size, std::uint64_t offset, std::uint64_t handle);
  CUresult unmap(std::uint64_t address, std::uint64_t size);
  CUresult set_access(std::uint64_t address, std::uint64_t size, CUmemAccess_flags flags);
  CUresult get_access(std::uint64_t address, CUmemAccess_flags& out) const;

  /// Frees every allocation and forgets every host block of a context.
  void release_owned(std::uint64_t owner);

  /// Held by whatever touches memory without the lock: a running kernel or copy. What it finds accessible
  /// stays mapped until it ends.
  class flight {
   public:
    explicit flight(memory& m);
    ~flight();
    flight(const flight&) = delete;
    flight& operator=(const flight&) = delete;

   private:
    memory& memory_;
    std::uint64_t number_;
  };

 private:
  struct physical {
    std::uint64_t offset = 0, size = 0;
    unsigned handles = 1, mappings = 0;
    CUmemAllocationProp properties{};
    unique_fd own = {};     ///< the file of memory that can be shared; else a part of backing_
    bool imported = false;  ///< another process's, in whose accounts it is
  };
  using regions = std::map<std::uint64_t, region>;

  explicit memory(std::uint64_t total) : total_(total) {}
  regions::const_iterator at(std::uint64_t address) const;
  bool free_in_regions(std::uint64_t address, std::uint64_t size) const;
  std::optional<std::uint64_t> take_small(std::uint64_t size, std::uint64_t align);
  void give_back_small(std::uint64_t address, std::uint64_t size);
  CUresult release_locked(regions::iterator block);
  /// Forgets a host block when what runs has ended, and then waits for what has found it meanwhile: behind
  /// this nobody touches its memory. `unknown` is the code if there is no such block.
  CUresult forget_host(std::uint64_t address, memory_kind kind, CUresult unknown, std::uint64_t& size);
  void drop_physical(std::map<std::uint64_t, physical>::iterator at);
  bool in_reservation(std::uint64_t address, std::uint64_t size) const;
  void wait_for_flights();

  const std::uint64_t total_;
  mutable std::shared_mutex mutex_;  // guards all below but the flights
  std::uint64_t used_ = 0;           // whole granules
  std::uint64_t last_id_ = 0;
  regions regions_;
  std::uint64_t arena_begin_ = 0, arena_size_ = 0;
  range_allocator arena_;    // whole granules for cuMemAlloc
  range_allocator small_;    // inside granules that are split
  unique_fd backing_;        // of physical allocations: one sparse file
  range_allocator offsets_;  // in backing_
  std::map<std::uint64_t, physical> physicals_;
  std::uint64_t last_physical_ = 0;
  std::map<std::uint64_t, std::uint64_t> reservations_;

  std::mutex flight_mutex_;
  std::condition_variable flight_ended_;
  std::set<std::uint64_t> flights_;
  std::uint64_t last_flight_ = 0;
};

}  // namespace outboard::device::cpu
