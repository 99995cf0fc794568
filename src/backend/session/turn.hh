// The turn: who may read the session's connection and touch its tables. Exactly one thread has it: a lane's
// thread, or the worker's main thread standing by. Requests run in the order in which they arrive because
// only the thread whose turn it is reads and executes; a request that may block on device work gives the turn
// up first, so a blocked wait never blocks another lane nor the reading. A lone lane keeps the turn from
// request to request: no hand-off.
#pragma once

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <mutex>

namespace outboard::backend {

/// One contender. Owned by its thread's object; `wake` is used with the turn's mutex.
struct contender {
  std::condition_variable wake;
  bool idle = true;     ///< waiting for the turn, so a frame may be handed to it
  bool called = false;  ///< to look for something else meanwhile
};

class turn {
 public:
  enum class awaited : std::uint8_t { turn, called, end };
  /// Waits until `own` holds the turn, is called, or the session ends.
  awaited await(contender& own);
  /// Lets who awaits the turn go without it, now or when it comes to await it.
  void call(contender& who);
  /// For whoever was called: has it the turn by now? await() then says so at once.
  bool is_given_to(const contender& own) const { return holder_.load(std::memory_order_relaxed) == &own; }
  /// As await(), but takes the turn whenever nobody has it, or gives up at `until` (then false and not
  /// ended()).
  bool await_free(contender& own, std::chrono::steady_clock::time_point until);

  /// Ends the stand-by's await_free() once, now or when it comes.
  void nudge(contender& standby);

  /// The holder passes the turn on.
  void pass(contender& to);
  /// The holder lets it go; whoever stands by takes it.
  void release(contender& standby);

  /// The same, and `own` may be handed frames from now on though it does not await the turn yet.
  void step_aside(contender& own, contender& standby);

  /// A contender without the turn wants it back from the one that stands by. True: it has it now, or the
  /// stand-by must be interrupted and will pass it (`interrupt` is set).
  void reclaim(contender& own, contender& standby, bool& interrupt);
  /// For the stand-by after an interrupt: whom to pass to, or nullptr.
  contender* wanted_by();

  /// Does `other` await the turn, or has it never got any? Holder only.
  bool is_idle(const contender& other) const;
  /// Waits until `other` is idle (its reply is out but its thread has not come back yet). Holder only.
  bool await_idle(contender& other);

  void end();
  void wake(contender& who);  ///< after end(): every contender must be woken
  bool ended() const { return ended_.load(std::memory_order_acquire); }
  bool held_by(const contender& who) const;

 private:
  void release_locked(contender& standby);

  mutable std::mutex mutex_;
  std::condition_variable idle_changed_;
  std::atomic<contender*> holder_{nullptr};  // set with the mutex
  contender* wanted_ = nullptr;
  bool nudged_ = false;
  std::atomic<bool> ended_{false};  // set with the mutex
};

}  // namespace outboard::backend
