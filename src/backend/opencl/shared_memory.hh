// The shared virtual memory of a session: which addresses of this process its client may name. Called with
// the session's turn.
#pragma once

#include <cstdint>
#include <iterator>
#include <map>
#include <memory>

#include "api/opencl/headers.hh"
#include "backend/opencl/memory_ledger.hh"

namespace outboard::backend::opencl {

class shared_memory {
 public:
  struct block {
    std::uint64_t size = 0;
    cl_context context = nullptr;  ///< we hold a reference
    /// If fine-grained: where the device's own block begins, which contains these pages. 0: coarse-grained.
    std::uint64_t native = 0;
    std::shared_ptr<memory_ledger::hold> held = nullptr;
  };

  void add(std::uint64_t address, block made) { blocks_[address] = std::move(made); }
  /// Takes out the block that begins here. If there is none, the result's context is null.
  block take(std::uint64_t address) {
    const auto found = blocks_.extract(address);
    return found.empty() ? block{} : std::move(found.mapped());
  }
  /// Returns whether all of it lies in one block. An empty range lies in none.
  bool holds(std::uint64_t address, std::uint64_t size) const {
    const auto after = blocks_.upper_bound(address);
    if (after == blocks_.begin() || size == 0) return false;
    const auto& [base, about] = *std::prev(after);
    return address - base < about.size && size <= about.size - (address - base);
  }

 private:
  std::map<std::uint64_t, block> blocks_;
};

}  // namespace outboard::backend::opencl
