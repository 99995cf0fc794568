// Page-locked blocks through which copies pass, so that posted copies to the device need not wait for it and
// the driver need not stage once more. Blocks are kept and reused: no allocation per copy. Any thread, with a
// context current.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <map>
#include <mutex>
#include <optional>
#include <span>
#include <vector>

#include "api/cuda/driver_table.hh"

namespace outboard::backend {

class staging {
 public:
  explicit staging(const api::driver_table& driver) : driver_(driver) {}
  ~staging();
  staging(const staging&) = delete;
  staging& operator=(const staging&) = delete;

  struct block {
    std::byte* data = nullptr;
    std::size_t size = 0;    ///< usable
    CUevent done = nullptr;  ///< recorded by give_back_after()
    std::size_t size_class = 0;
    bool pinned = false;
    bool of_slab = false;  ///< one registration for it and its neighbours
    std::uint64_t context = 0,
                  life = 0;  ///< that it was made in, and whose streams `done` can be recorded in
  };

  /// A block of at least `size` bytes (at most the largest class), waiting for a busy one when the limit is
  /// reached. `context`: handle of the caller's current one. data == nullptr: no memory on the host.
  block take(std::size_t size, std::uint64_t context);
  /// Free at once.
  void give_back(block b);
  /// Free when the work submitted to `stream` so far is done.
  void give_back_after(block b, CUstream stream, bool per_thread);

  /// So many blocks of this size, page-locked together before somebody waits for them: together that costs a
  /// fraction. Once for each life of a context.
  void prepare(std::size_t size, std::size_t count, std::uint64_t context);

  /// The context is dead, and with it what the driver knew of its blocks. A new one may have the same handle.
  void drop_context(std::uint64_t context);

  std::size_t bytes() const;  ///< page-locked memory held

  static constexpr std::size_t largest = 16u << 20;

 private:
  void reap();
  void wait_for_oldest(std::unique_lock<std::mutex>& lock);
  void put_back(const block& b);
  bool alive(const block& b) const;
  std::optional<block> find(std::size_t size_class, std::uint64_t context);
  bool let_one_go(std::unique_lock<std::mutex>& lock);
  block make(std::size_t size_class, std::uint64_t context, std::uint64_t life);

  static constexpr std::size_t smallest = 64u << 10, classes = 9;  // 64 KiB ... 16 MiB
  static constexpr std::size_t limit = 256u << 20;                 // page-locked memory of one session

  const api::driver_table& driver_;
  mutable std::mutex mutex_;  // never held in a call of the driver that may wait
  std::vector<block> free_[classes];
  std::deque<block> busy_;
  std::map<std::uint64_t, std::uint64_t> lives_;     // of contexts
  std::map<std::uint64_t, std::uint64_t> prepared_;  // by context: in which life, counted from 1
  std::size_t total_ = 0;
};

}  // namespace outboard::backend
