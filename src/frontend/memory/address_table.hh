// Which device and pinned addresses the program holds, and what they are: the front-end's ledger. Found by
// address in O(log n) under a shared lock; a launch never asks it. Any thread.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <shared_mutex>
#include <vector>

namespace outboard::frontend {

enum class memory_kind : std::uint8_t {
  device,         ///< cuMemAlloc and its kin
  global,         ///< a variable of a module, at an address the device chose
  virtual_range,  ///< cuMemMap: a device's
  host_range,     ///< cuMemMap: the host's, of which the server has the same pages
  pool,           ///< cuMemAllocAsync
  pinned,         ///< cuMemHostAlloc: host memory of this process
  registered,     ///< cuMemHostRegister: the program's own memory
  alias,          ///< the device's address of registered memory, where it is another
  imported,       ///< cuIpcOpenMemHandle: another process's memory
  managed,        ///< cuMemAllocManaged, __managed__: the device's and this process's
  graph,          ///< a graph's own: there while its launches have it allocated, which only the server knows
};

struct memory_block {
  std::uint64_t base = 0, size = 0;  ///< as the program asked
  memory_kind kind = memory_kind::device;
  std::uint64_t context = 0;  ///< handle
  std::int32_t device = 0;    ///< ordinal
  std::uint64_t pool = 0;     ///< pool: handle
  std::uint64_t mapped = 0;   ///< bytes of the window that are this block's own; 0: part of a slab
  bool variable = false;      ///< managed: of a module
  std::uint64_t host = 0;     ///< alias: the program's address
  bool sync_memops = false;   ///< copies and fills of it wait
  bool closed = false;        ///< virtual_range: no device has been given all access
  unsigned flags = 0;         ///< pinned: cuMemHostAlloc flags
  std::uint64_t id = 0;       ///< CU_POINTER_ATTRIBUTE_BUFFER_ID, unique in the process
};

/// Page-locked memory of this process: copies and kernels reach it as coherence.hh has it.
inline bool is_host(memory_kind kind) {
  return kind == memory_kind::pinned || kind == memory_kind::registered;
}
/// By cuMemMap.
inline bool is_mapped(memory_kind kind) {
  return kind == memory_kind::virtual_range || kind == memory_kind::host_range;
}
/// Memory of the host, at an address of the program's.
inline bool lies_on_host(memory_kind kind) { return is_host(kind) || kind == memory_kind::host_range; }
/// Memory of the host by any address.
inline bool names_host(memory_kind kind) { return lies_on_host(kind) || kind == memory_kind::alias; }

class address_table {
 public:
  void insert(memory_block block);  ///< gives it an id
  /// Takes out the block that starts exactly here.
  std::optional<memory_block> remove(std::uint64_t base);
  /// The block that holds the address.
  std::optional<memory_block> find(std::uint64_t address) const;
  /// Is [address, address + size) inside device memory that we know to be there, contiguously, and that
  /// devices may read and write?
  bool covers(std::uint64_t address, std::uint64_t size) const;
  /// CU_POINTER_ATTRIBUTE_SYNC_MEMOPS of the block that holds the address. False: none does.
  bool set_sync_memops(std::uint64_t address, bool on);
  /// The blocks that begin in [base, base + size).
  void set_closed(std::uint64_t base, std::uint64_t size, bool closed);
  /// Takes out and returns all that `which` picks.
  std::vector<memory_block> remove_if(const std::function<bool(const memory_block&)>& which);

 private:
  mutable std::shared_mutex mutex_;
  std::map<std::uint64_t, memory_block> blocks_;
  std::uint64_t next_id_ = 1;
};

}  // namespace outboard::frontend
