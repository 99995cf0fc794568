// The shared virtual memory of this process: blocks at the addresses that the server's devices chose, where
// the same pages are claimed here. Own lock; any thread.
#pragma once

#include <map>
#include <mutex>
#include <optional>
#include <vector>

#include "frontend/opencl/memory_claim.hh"
#include "frontend/opencl/objects.hh"
#include "frontend/window.hh"

namespace outboard::frontend::opencl {

/// A mapped part of a block.
struct svm_mapping {
  void* at = nullptr;
  std::size_t size = 0;
  cl_map_flags flags = 0;
};

class svm_book {
 public:
  static svm_book& instance();

  /// Makes the block's pages usable here. `file`: the server's file, whose pages they are
  /// (foreign_claims::share); -1: this process has pages of its own. Returns false if something of this
  /// process is there, or another back-end's block.
  bool add(std::uint64_t address, std::size_t size, cl_context context, int file = -1);
  /// Sets what the block that begins here takes of its devices' memory.
  void charge(std::uint64_t address, memory_claim claim);

  struct removed {
    needed<cl_context> context;
    memory_claim claim;  ///< keep it until the server knows of the removal
  };
  /// Removes the block that begins here, with its pages. Returns nothing if there is none.
  std::optional<removed> remove(const void* at);

  struct place {
    cl_context context = nullptr;
    bool whole = false;       ///< the whole requested range is in the block
    bool same_pages = false;  ///< the server has the same pages: no bytes need travel
  };
  /// The block that contains this address, if there is one.
  std::optional<place> find(const void* at, std::size_t size = 1) const;

  /// Records a mapping of a part for which find() returned `whole`.
  void map(const svm_mapping& part);
  /// Removes and returns the latest mapping that begins here.
  std::optional<svm_mapping> unmap(const void* at);

 private:
  struct block {
    std::size_t size = 0;
    std::size_t taken = 0;  ///< including what no other block may use: shared pages are shared whole
    bool same_pages = false;
    needed<cl_context> context;
    std::vector<svm_mapping> mapped;
    memory_claim claim;
  };
  using blocks = std::map<std::uint64_t, block>;
  blocks::const_iterator block_of(const void* at) const;

  mutable std::mutex mutex_;  // guards blocks_
  blocks blocks_;
  foreign_claims pages_;
};

}  // namespace outboard::frontend::opencl
