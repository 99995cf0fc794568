// The front-end's books of sharing: memory of other processes that this one has opened (counted, as a driver
// counts), and descriptors that the program was given. Makes no calls. Any thread; what must not happen twice
// is done under the book's lock.
#pragma once

#include <atomic>
#include <cstdint>
#include <map>
#include <mutex>
#include <vector>

#include "frontend/share_descriptor.hh"

namespace outboard::frontend {

struct opened_memory {
  std::uint64_t base = 0;  ///< what the program got
  std::uint64_t context = 0;
  marshal::share_token token{};
  std::uint64_t mapped_at = 0, mapped_size = 0;
  std::int32_t slot = 0;
  int count = 1;
};

class shared_book {
 public:
  /// Held across opening and closing memory, which a driver does one after the other as well.
  std::mutex& opening() { return opening_; }
  // With opening():
  opened_memory* find(std::uint64_t base);
  opened_memory* find(const marshal::share_token& token, std::uint64_t context);
  void insert(const opened_memory& m) { opened_[m.base] = m; }
  void erase(std::uint64_t base) { opened_.erase(base); }
  /// All that a context had open; it has died.
  std::vector<opened_memory> take_context(std::uint64_t context);

  /// A descriptor was given out for an allocation's token.
  void given(std::uint64_t allocation, const marshal::share_token& token, unique_fd watch);
  /// The allocation is released. True: copies of its descriptors live on, to be asked about with forgotten().
  bool released(std::uint64_t allocation);
  /// Tokens of released allocations whose last descriptor has been closed since.
  std::vector<marshal::share_token> forgotten();

  /// From the first export or import on, other processes may learn at once what a call has done: calls that
  /// return when their work is done must be waited for.
  bool in_use() const { return in_use_.load(std::memory_order_relaxed); }
  void use() { in_use_.store(true, std::memory_order_relaxed); }

 private:
  struct descriptors {
    marshal::share_token token{};
    std::vector<unique_fd> watches;
  };
  static bool held(descriptors& d);

  std::atomic<bool> in_use_{false};
  std::mutex opening_;
  std::map<std::uint64_t, opened_memory> opened_;
  std::mutex mutex_;  // guards what follows
  std::map<std::uint64_t, descriptors> given_;
  std::vector<descriptors> lasting_;  ///< of allocations that are released
};

}  // namespace outboard::frontend
