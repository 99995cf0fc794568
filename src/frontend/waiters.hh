// The threads that wait for a reply, by the ticket of the request. The table is made of the waiters
// themselves, so that a call, which takes about as long as a few allocations, makes none. Not thread-safe:
// used by the session, with its lock.
#pragma once

#include <array>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "base/fd.hh"

namespace outboard::frontend {

/// A call under way; on the stack of the thread that makes it.
struct waiter {
  std::uint64_t ticket = 0;
  std::vector<std::byte>* into = nullptr;
  unique_fd* descriptor = nullptr;
  bool done = false;
  bool asleep = false;  ///< until it is woken, and then it leads if no other waiter does
  std::condition_variable wake;
  waiter* next = nullptr;  ///< of the table
};

class waiters {
 public:
  void add(waiter& one) {
    waiter*& first = bucket(one.ticket);
    one.next = first;
    first = &one;
  }
  waiter* find(std::uint64_t ticket) const {
    waiter* at = buckets_[ticket % buckets_.size()];
    while (at && at->ticket != ticket) at = at->next;
    return at;
  }
  void remove(const waiter& one) {
    waiter** at = &bucket(one.ticket);
    while (*at && *at != &one) at = &(*at)->next;
    if (*at) *at = one.next;
  }
  /// Until `visit` says true.
  template <class Visit>
  void each(Visit&& visit) const {
    for (waiter* first : buckets_) {
      for (waiter* at = first; at; at = at->next) {
        if (visit(*at)) return;
      }
    }
  }

 private:
  waiter*& bucket(std::uint64_t ticket) { return buckets_[ticket % buckets_.size()]; }
  std::array<waiter*, 64> buckets_{};  ///< tickets follow each other, so that few share one
};

}  // namespace outboard::frontend
