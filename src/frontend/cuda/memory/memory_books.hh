// All that the front-end knows of the program's memory: which addresses are device or page-locked memory,
// where device memory lies (the window) or was put by the device, the host memory that kernels see, what is
// reserved and shared. Part of the process's state; each book has its own lock, so any thread.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>

#include "api/cuda/headers.hh"
#include "frontend/cuda/memory/address_table.hh"
#include "frontend/cuda/memory/device_window.hh"
#include "frontend/cuda/memory/freed_blocks.hh"
#include "frontend/cuda/memory/mirrors.hh"
#include "frontend/cuda/memory/pinned_arena.hh"
#include "frontend/cuda/memory/shared_book.hh"
#include "frontend/cuda/memory/virtual_book.hh"
#include "frontend/window.hh"

namespace outboard::frontend {

class managed_blocks;

class memory_books {
 public:
  memory_books();
  ~memory_books();

  address_table addresses;
  freed_blocks freed;
  device_window window;
  pinned_arena arena;
  frontend::mirrors mirrors;
  managed_blocks& managed() { return *managed_; }
  virtual_book virtual_memory;
  shared_book shared;
  std::mutex showing;  ///< held while a block becomes visible to kernels

  /// Claims the addresses of window and arena, before the server is asked.
  void claim();

  /// Enters memory at an address that the device chose. CUDA_ERROR_MAP_FAILED: this process has something of
  /// its own there, so pointers would be ambiguous.
  CUresult insert_foreign(const memory_block& block);
  /// insert_foreign() for memory of a graph, whose addresses the device may give to another graph's later.
  CUresult insert_graph_memory(memory_block block);
  /// Takes addresses that the device chose out of the program's reach. False: something of its own is there.
  bool claim_foreign(std::uint64_t address, std::uint64_t size);
  /// claim_foreign() for managed memory, which the program may touch; and the end of it.
  bool open_foreign(std::uint64_t address, std::uint64_t size);
  void close_foreign(std::uint64_t address, std::uint64_t size) { foreign_.close(address, size); }

  /// The program has page-locked or managed memory: requests may have to be looked through for its addresses.
  bool host_memory_in_use() const { return host_memory_in_use_.load(std::memory_order_relaxed); }
  void use_host_memory() { host_memory_in_use_.store(true, std::memory_order_relaxed); }
  /// Graphs allocate or free memory: a launch may be refused for what an earlier one has left.
  bool graph_memory_in_use() const { return graph_memory_in_use_.load(std::memory_order_relaxed); }
  void use_graph_memory() { graph_memory_in_use_.store(true, std::memory_order_relaxed); }

 private:
  void open_arena(std::uint64_t base, std::uint64_t size);

  foreign_claims foreign_;
  claimed_range arena_range_;  ///< where there is no window that the arena could be a part of
  std::unique_ptr<managed_blocks> managed_;
  std::atomic<bool> host_memory_in_use_{false}, graph_memory_in_use_{false};
};

}  // namespace outboard::frontend
