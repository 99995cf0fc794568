// Blocks of page-locked memory that a process shares with its server, and a word for each that the device
// writes when it is done with the block. Owned by the part that stages copies; used by one copy at a time,
// whose helping threads call is_free() and place() only.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <mutex>

namespace outboard::frontend {

class staging_area {
 public:
  static constexpr std::uint64_t block_size = 1u << 20, blocks = 16, first_page = 4096;
  static constexpr std::uint64_t size = first_page + blocks * block_size;

  std::mutex use;  ///< held by the copy that uses the area; guards all below

  std::uint64_t base = 0;    ///< 0: no memory yet
  std::uint64_t wanted = 0;  ///< bytes that would have gone through it so far

  void open(std::uint64_t at) {
    base = at;
    values_ = {};
    last_ = 0;
  }

  /// The place of the copy's block number `n`, and the word and value that tell that the device is done with
  /// it. A copy numbers its blocks from 0 on.
  std::uint64_t place(std::uint64_t n) const { return base + first_page + slot(n) * block_size; }
  std::uint64_t word(std::uint64_t n) const { return base + slot(n) * sizeof(std::uint32_t); }
  std::uint32_t value(std::uint64_t n) const { return last_ + static_cast<std::uint32_t>(n) + 1; }

  /// Is the device done with what lay there before block `n` of this copy?
  bool is_free(std::uint64_t n) const {
    return read(n) == (n < blocks ? values_[slot(n)] : value(n - blocks));
  }
  /// Is it done with block `n` itself?
  bool is_done(std::uint64_t n) const { return read(n) == value(n); }

  /// The copy had `count` blocks, and all were handed to the device.
  void end_copy(std::uint64_t count) {
    for (std::uint64_t n = count > blocks ? count - blocks : 0; n < count; ++n) values_[slot(n)] = value(n);
    last_ += static_cast<std::uint32_t>(count);
    first_ = (first_ + count) % blocks;
  }

 private:
  std::uint64_t slot(std::uint64_t n) const { return (first_ + n) % blocks; }
  std::uint32_t read(std::uint64_t n) const {
    auto& there = *reinterpret_cast<std::uint32_t*>(word(n));
    return std::atomic_ref<std::uint32_t>(there).load(std::memory_order_acquire);  // partner: the device
  }

  std::array<std::uint32_t, blocks> values_{};  ///< of each block's last use
  std::uint32_t last_ = 0;
  std::uint64_t first_ = 0;
};

/// A small one of those, for one short copy at a time, which is waited for.
struct landing_block {
  static constexpr std::uint64_t size = 64u << 10, least = 1024;
  static constexpr unsigned worth_preparing = 16;  ///< copies

  std::mutex use;          ///< guards what follows
  std::uint64_t base = 0;  ///< 0: no memory
  unsigned copies = 0;     ///< that would have passed so far
};

}  // namespace outboard::frontend
