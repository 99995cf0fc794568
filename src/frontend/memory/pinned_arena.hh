// The arena: page-locked memory that programs allocate, in a range of addresses that is free on both sides of
// a session. Small blocks share chunks; a chunk is the unit that the server knows. The caller decides what
// backs a chunk. Never page-protected, and chunks that lie side by side are one mapping of the kernel's. Any
// thread.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <vector>

#include "api/cuda/headers.hh"
#include "frontend/memory/slab.hh"
#include "frontend/memory/window.hh"

namespace outboard::frontend {

struct pinned_chunk {
  std::uint64_t base = 0, size = 0;
  bool shared = false;        ///< the server has the same pages: set when it is backed
  std::uint64_t context = 0;  ///< shared: in which the server page-locked them
};

class pinned_arena {
 public:
  /// `base` 0: no range is free in this process; then nothing can be allocated. `small` is the size of chunks
  /// that small blocks share: comparing one costs as much as its size.
  void open(std::uint64_t base, std::uint64_t size, std::uint64_t small);

  /// Sharing chunks costs a request each, but nothing at a launch: they may be larger.
  void set_small_chunk(std::uint64_t size);

  using back_chunk = std::function<CUresult(pinned_chunk&)>;
  using drop_chunk = std::function<void(const pinned_chunk&)>;
  CUresult allocate(std::uint64_t size, const back_chunk& back, std::uint64_t& address);
  void release(std::uint64_t address, std::uint64_t size, const drop_chunk& drop);

  bool in_use() const { return in_use_.load(std::memory_order_relaxed); }  ///< anything was ever allocated
  /// Is there, or was there ever, a chunk that the server does not share?
  bool has_private() const { return has_private_.load(std::memory_order_relaxed); }
  bool holds(std::uint64_t address) const { return address - base_ < size_; }
  std::uint64_t base() const { return base_; }
  std::uint64_t size() const { return size_; }
  std::optional<pinned_chunk> chunk_of(std::uint64_t address) const;
  std::vector<pinned_chunk> chunks() const;
  /// The server has let go of what it shared in this context (0: of all): the pages stay, ours alone.
  void unshare(std::uint64_t context);

 private:
  CUresult make_chunk(std::uint64_t size, const back_chunk& back, std::uint64_t& base);
  void drop_chunk_at(std::uint64_t base, const drop_chunk& drop);

  std::uint64_t base_ = 0, size_ = 0, small_chunk_ = 0;
  std::unique_ptr<slot_addresses> free_;
  std::atomic<bool> in_use_{false}, has_private_{false};
  mutable std::mutex mutex_;  // guards what follows; held while a chunk is backed
  slab_allocator small_;
  std::map<std::uint64_t, pinned_chunk> chunks_;  // by base
};

}  // namespace outboard::frontend
