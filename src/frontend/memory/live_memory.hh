// Host memory that is kept twice (mirrors.hh) while work goes on that may look at it: a stream that waits for
// a word, a kernel that polls one, a program that polls what either writes. From the first such request on,
// one thread lets both sides exchange what they have changed, many times a second, until the work is known to
// be over. Managed memory is not included (managed_blocks.hh). Owned by the process state; any thread.
#pragma once

#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <map>
#include <mutex>

#include "frontend/memory/mirrors.hh"
#include "frontend/session.hh"
#include "frontend/work_flow.hh"

namespace outboard::frontend {

class live_memory {
 public:
  explicit live_memory(mirrors& all) : mirrors_(all) {}

  /// The server has a request of this flow whose work may look at what both sides have, or write it.
  void begins(session& server, const work_flow& flow, bool awaits_word);
  /// Something goes on. Where nothing does what follows costs no lock.
  bool any() const { return any_.load(std::memory_order_acquire); }
  /// Copies of page-locked memory may stand behind a stream's wait for a word.
  bool words_awaited() const { return awaited_.load(std::memory_order_acquire); }
  /// What was said so far, for the two that follow.
  std::uint64_t mark() const { return mark_.load(std::memory_order_acquire); }
  /// The program has learned that what the flow had at `mark` is over; or all of a context, whose flows those
  /// are.
  void over(const work_flow& flow, std::uint64_t mark);
  void context_over(std::uint64_t context, std::uint64_t mark);

  /// An event stands for what its flow had when it was recorded: where nothing goes on that is over.
  void recorded(std::uint64_t event, const work_flow& flow);
  void event_over(std::uint64_t event);

  /// The session is over: the thread ends.
  void stop();

 private:
  using clock = std::chrono::steady_clock;
  /// How long something takes where nothing disturbs it: the least of the last few times.
  class usual_time {
   public:
    void took(std::chrono::nanoseconds t) { times_[next_++ % times_.size()] = t; }
    std::chrono::nanoseconds least() const {
      const std::size_t known = std::clamp<std::size_t>(next_, 1, times_.size());
      return *std::min_element(times_.begin(), times_.begin() + static_cast<std::ptrdiff_t>(known));
    }

   private:
    std::array<std::chrono::nanoseconds, 8> times_{};
    std::size_t next_ = 0;
  };
  void count();
  void serve();
  std::chrono::nanoseconds step(lane& own);

  mirrors& mirrors_;
  session* server_ = nullptr;
  std::atomic<std::uint64_t> mark_{0};
  std::atomic<bool> ended_{false}, any_{false}, awaited_{false};

  std::mutex mutex_;  // guards what follows; never held while a request is under way
  std::condition_variable changed_;
  bool started_ = false, asleep_ = false;
  struct latest {
    std::uint64_t mark = 0;
    bool awaits_word = false;  ///< one of the requests did
  };
  std::map<work_flow, latest> flows_;
  std::map<std::uint64_t, std::pair<work_flow, std::uint64_t>> events_;  // with the mark

  // The thread's own.
  std::uint64_t seen_mark_ = 0;
  clock::time_point looked_{}, moved_{};  // last look, last one that moved something
  clock::time_point next_all_{};          // when all memory is looked at again
  usual_time usual_, usual_all_;
};

}  // namespace outboard::frontend
