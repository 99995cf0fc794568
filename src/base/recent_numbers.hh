// What the newest of many numbers stand for, where numbers only grow: a ring that forgets the oldest. One
// entry is written once and read by any thread, without a lock; a reader that comes too late finds nothing.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <memory>
#include <type_traits>

namespace outboard {

/// `Value` is an integer or an enumeration; Value{} means that nothing is known.
template <class Value>
class recent_numbers {
 public:
  static_assert(std::atomic<Value>::is_always_lock_free);

  /// `size`: how many are remembered. Memory is taken as they come. Where there is none, nothing is kept.
  explicit recent_numbers(std::size_t size)
      : size_(size), entries_(static_cast<entry*>(std::calloc(size, sizeof(entry)))) {}

  /// `number` is not 0.
  void note(std::uint64_t number, Value value) {
    if (!entries_) return;
    entry& e = entries_.get()[number % size_];
    e.number.store(0, std::memory_order_relaxed);
    e.value.store(value, std::memory_order_release);
    e.number.store(number, std::memory_order_release);
  }

  Value find(std::uint64_t number) const {
    if (!entries_ || number == 0) return Value{};
    const entry& e = entries_.get()[number % size_];
    if (e.number.load(std::memory_order_acquire) != number) return Value{};
    const Value value = e.value.load(std::memory_order_acquire);
    return e.number.load(std::memory_order_relaxed) == number ? value : Value{};
  }

 private:
  struct entry {
    std::atomic<std::uint64_t> number;
    std::atomic<Value> value;
  };
  static_assert(std::is_trivially_destructible_v<entry>);
  struct release {
    void operator()(entry* all) const { std::free(all); }
  };

  const std::size_t size_;
  const std::unique_ptr<entry, release> entries_;  // zeroes are empty entries
};

}  // namespace outboard
