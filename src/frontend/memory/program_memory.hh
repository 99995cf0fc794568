// The program's memory as the front-end keeps it: the window of device addresses, which address is what, and
// what server and program both have. One, of the process state; any thread, but for what says otherwise.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <vector>

#include "frontend/memory/address_table.hh"
#include "frontend/memory/freed_blocks.hh"
#include "frontend/memory/mirrors.hh"
#include "frontend/memory/pinned_arena.hh"
#include "frontend/memory/shared_book.hh"
#include "frontend/memory/virtual_book.hh"
#include "frontend/memory/window.hh"
#include "marshal/cuda/snapshot.hh"
#include "wire/hello.hh"

namespace outboard::frontend {

class live_memory;
class managed_blocks;
class session;
struct settings;

class program_memory {
 public:
  program_memory();
  ~program_memory();

  // While the process connects:

  /// Takes an address range that is free in this process, and names it in the hello.
  void claim_window(wire::hello& hello);
  /// The server's answer, once.
  void adopt(const marshal::snapshot& facts);
  /// What this server and the settings allow; again for a server that carries the session on.
  void use(const marshal::snapshot& facts, const settings& s);
  /// Server and program can have the same pages.
  void expect_shared_pages();
  /// The program ends: nothing is exchanged with the server any more.
  void stop();

  /// A host function of the program is about to run, which may use all that server and program both have; and
  /// it has run. The thread that runs it.
  void lend(session& server);
  void take_back(session& server);

  address_table& addresses() { return addresses_; }
  freed_blocks& freed() { return freed_; }
  slot_addresses* window_slot(int device) const;
  /// The one that holds this address.
  slot_addresses* window_slot_at(std::uint64_t address) const;
  /// From now on the driver chooses the addresses of blocks, because it does not dump what is mapped in a
  /// window (observed on 580.159.04).
  void leave_window() { window_left_.store(true, std::memory_order_relaxed); }
  bool window_left() const { return window_left_.load(std::memory_order_relaxed); }
  /// Enters memory at an address that the device chose into the books. CUDA_ERROR_MAP_FAILED: this process
  /// has something of its own there, so pointers would be ambiguous.
  CUresult insert_foreign(const memory_block& block);
  /// The same for memory of a graph, whose addresses the device may give to another graph's later.
  CUresult insert_graph_memory(memory_block block);
  /// Takes addresses that the device chose out of the program's reach. False: something of its own is there.
  bool claim_foreign(std::uint64_t address, std::uint64_t size);
  /// The same for managed memory, which the program may touch; and the end of it.
  bool open_foreign(std::uint64_t address, std::uint64_t size);
  void close_foreign(std::uint64_t address, std::uint64_t size) { foreign_.close(address, size); }
  pinned_arena& arena() { return arena_; }
  frontend::mirrors& mirrors() { return mirrors_; }
  managed_blocks& managed() { return *managed_; }
  live_memory& live() { return *live_; }
  /// Host and kernels may use managed memory at the same time: the devices can, and so can this process.
  bool concurrent_managed() const { return concurrent_managed_; }
  /// Kernels know only the page-locked memory whose addresses were found on their way; otherwise they may
  /// know all of it.
  bool find_addresses() const { return find_addresses_; }
  std::mutex& showing() { return showing_; }  ///< held while a block becomes visible to kernels
  bool host_memory_in_use() const { return host_memory_in_use_.load(std::memory_order_relaxed); }
  void use_host_memory() { host_memory_in_use_.store(true, std::memory_order_relaxed); }
  /// The program has page-locked memory that kernels are meant to write: it has said so, or asked for its
  /// device pointer.
  bool host_memory_mapped() const { return host_memory_mapped_.load(std::memory_order_relaxed); }
  void map_host_memory() { host_memory_mapped_.store(true, std::memory_order_relaxed); }
  /// Graphs allocate or free memory: a launch may be refused for what an earlier one has left.
  void use_graph_memory() { graph_memory_in_use_.store(true, std::memory_order_relaxed); }
  bool graph_memory_in_use() const { return graph_memory_in_use_.load(std::memory_order_relaxed); }
  virtual_book& virtual_memory() { return virtual_memory_; }
  shared_book& shared() { return shared_; }

 private:
  void open_arena(std::uint64_t base, std::uint64_t size);

  address_table addresses_;
  freed_blocks freed_;
  foreign_claims foreign_;
  virtual_book virtual_memory_;
  shared_book shared_;
  claimed_range arena_range_;
  pinned_arena arena_;
  frontend::mirrors mirrors_;
  std::unique_ptr<managed_blocks> managed_;
  std::unique_ptr<live_memory> live_;
  bool concurrent_managed_ = false, find_addresses_ = true;
  std::mutex showing_;
  std::atomic<bool> host_memory_in_use_{false}, host_memory_mapped_{false};
  std::atomic<bool> graph_memory_in_use_{false};
  claimed_range window_;
  std::uint64_t window_base_ = 0, slot_size_ = 0;
  std::vector<std::unique_ptr<slot_addresses>> slots_;
  std::atomic<bool> window_left_{false};
};

}  // namespace outboard::frontend
