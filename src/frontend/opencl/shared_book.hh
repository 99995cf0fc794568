// The shared virtual memory of this process: blocks at the addresses that the server's devices chose, where
// the same pages are claimed here. Own lock; any thread.
#pragma once

#include <map>
#include <mutex>
#include <optional>
#include <vector>

#include "frontend/memory/window.hh"
#include "frontend/opencl/memory_claim.hh"
#include "frontend/opencl/objects.hh"

namespace outboard::frontend::opencl {

/// A part of a block that the program sees.
struct shared_mapping {
  void* at = nullptr;
  std::size_t size = 0;
  cl_map_flags flags = 0;
};

class shared_book {
 public:
  static shared_book& instance();

  /// Makes the block's pages usable here. `file`: they are those of the server's file
  /// (foreign_claims::share); -1: this process has its own. False: something of this process lies there, or
  /// another back-end's block.
  bool add(std::uint64_t address, std::size_t size, cl_context context, int file = -1);
  /// What the block that begins here takes of its devices' memory.
  void charge(std::uint64_t address, memory_claim claim);

  struct removed {
    needed<cl_context> context;
    memory_claim claim;  ///< to be kept until the server has been informed
  };
  /// Removes the block that begins here, and its pages with it. Nothing: there is none.
  std::optional<removed> remove(const void* at);

  struct place {
    cl_context context = nullptr;
    bool whole = false;       ///< all that was asked for lies in the block
    bool same_pages = false;  ///< the server has them, too: no bytes need travel
  };
  /// The block in which this address lies, if there is one.
  std::optional<place> find(const void* at, std::size_t size = 1) const;

  /// For a part that find() has found whole.
  void map(const shared_mapping& part);
  /// The latest mapping that begins here, taken out.
  std::optional<shared_mapping> unmap(const void* at);

 private:
  struct block {
    std::size_t size = 0;
    std::size_t taken = 0;  ///< with what no other block may use: shared pages are shared whole
    bool same_pages = false;
    needed<cl_context> context;
    std::vector<shared_mapping> mapped;
    memory_claim claim;
  };
  using blocks = std::map<std::uint64_t, block>;
  blocks::const_iterator block_of(const void* at) const;

  mutable std::mutex mutex_;  // guards blocks_
  blocks blocks_;
  foreign_claims pages_;
};

}  // namespace outboard::frontend::opencl
