// Blocks of page-locked memory that a process shares with its server, for copies to the host that nobody
// waits for: which of them the next piece of a stream may use, and whether the device must wait for it. Owned
// by a context's state, used with its lock.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>

#include "base/fd.hh"
#include "frontend/copying/drains.hh"

namespace outboard::frontend {

class later_area {
 public:
  static constexpr std::uint64_t block_size = 1u << 20, blocks = 64, first_page = 4096;
  static constexpr std::uint64_t size = first_page + blocks * block_size;

  /// One use of a block. Values count its uses.
  struct turn {
    std::uint64_t offset = 0;           ///< of the block
    std::uint64_t done = 0, freed = 0;  ///< offsets of its words: see drains
    std::uint32_t value = 0;
    bool wait = false;  ///< the device must wait until `freed` holds value - 1
  };

  std::uint64_t base() const { return base_; }  ///< 0: no memory yet
  const std::shared_ptr<const unique_fd>& file() const { return file_; }

  void open(std::uint64_t at, unique_fd file) {
    base_ = at;
    file_ = std::make_shared<const unique_fd>(std::move(file));
    slots_ = {};
  }
  void close() {
    base_ = 0;
    file_.reset();
  }

  /// Empty: all blocks belong to other streams, for which none may wait.
  std::optional<turn> next(const drains::stream_key& stream) {
    slot *free = nullptr, *oldest = nullptr;
    std::size_t free_ones = 0, own = 0;
    for (slot& s : slots_) {
      if (is_free(s)) {
        ++free_ones;
        if (!free) free = &s;
      } else if (s.stream == stream) {
        ++own;
        if (!oldest || s.order < oldest->order) oldest = &s;
      }
    }
    // No stream takes all: the next one that begins shall have some, too.
    slot* chosen = free && (own < 2 || own < free_ones / 2) ? free : oldest;
    if (!chosen) return std::nullopt;
    const std::uint64_t n = static_cast<std::uint64_t>(chosen - slots_.data());
    const turn got{first_page + n * block_size, n * word, first_page / 2 + n * word, chosen->value + 1,
                   chosen != free};
    chosen->value = got.value;
    chosen->stream = stream;
    chosen->order = ++last_;
    return got;
  }
  /// The device will not be asked for the turn that was given last.
  void take_back(const turn& given) { --slots_[given.done / word].value; }

 private:
  static constexpr std::uint64_t word = sizeof(std::uint32_t);
  struct slot {
    std::uint32_t value = 0;
    std::uint64_t order = 0;
    drains::stream_key stream;
  };
  bool is_free(const slot& s) const {
    const auto n = static_cast<std::uint64_t>(&s - slots_.data());
    auto& there = *reinterpret_cast<std::uint32_t*>(base_ + first_page / 2 + n * word);
    return std::atomic_ref<std::uint32_t>(there).load(std::memory_order_acquire) == s.value;
  }

  std::uint64_t base_ = 0, last_ = 0;
  std::shared_ptr<const unique_fd> file_;
  std::array<slot, blocks> slots_{};
};

}  // namespace outboard::frontend
