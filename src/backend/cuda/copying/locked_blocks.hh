// Page-locked host memory that comes back in the driver's callbacks, where no CUDA call is allowed: what is
// given back waits there for whoever takes next, and is let go of only then. Owned by whoever hands the
// blocks out.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <mutex>
#include <optional>
#include <vector>

#include "api/cuda/driver_table.hh"

namespace outboard::backend {

class locked_blocks {
 public:
  explicit locked_blocks(const api::driver_table& driver) : driver_(driver) {}
  ~locked_blocks();
  locked_blocks(const locked_blocks&) = delete;
  locked_blocks& operator=(const locked_blocks&) = delete;

  struct block {
    std::byte* data = nullptr;  ///< null: no memory
    std::uint64_t size = 0;     ///< whole pages
    bool locked = false;        ///< else the device has no such call, or there is no context: ordinary memory
    std::uint64_t context = 0, life = 0;
  };

  /// A lane's thread, in this context. The bytes are what its last user left.
  block take(std::uint64_t size, std::uint64_t context);
  /// Any thread, callbacks of the driver too. Nobody reads or writes it any more.
  void give_back(const block& b);
  /// With the context the driver's part of its blocks goes.
  void drop_context(std::uint64_t context);

  std::uint64_t bytes() const;  ///< in use and kept

  /// Kept beyond it only until the next take().
  static constexpr std::uint64_t most_kept = 256u << 20;

 private:
  std::vector<block> surplus();
  std::optional<block> reuse(std::uint64_t size, std::uint64_t context);
  bool usable(const block& b) const;

  const api::driver_table& driver_;
  mutable std::mutex mutex_;
  std::vector<block> free_;
  std::uint64_t total_ = 0, kept_ = 0;
  std::map<std::uint64_t, std::uint64_t> lives_;  // of contexts: a reset begins a new one
};

}  // namespace outboard::backend
