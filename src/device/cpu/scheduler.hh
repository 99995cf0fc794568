// The order of work on the cpu device: streams are queues of operations, events are points in them, and a
// small set of threads runs the operations that are ready. One lock guards all queues; it is never held while
// an operation runs. Any thread; owned by the machine.
//
// The legacy default stream: operations of it and of blocking streams of one context are numbered into
// alternating phases (all blocking streams | the legacy stream | blocking streams ...); an operation may run
// once its phase is the oldest with unfinished work. So an operation costs the same however many streams
// there are.
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <deque>
#include <functional>
#include <list>
#include <map>
#include <memory>
#include <mutex>
#include <thread>
#include <unordered_set>
#include <vector>

#include "api/cuda/headers.hh"

namespace outboard::device::cpu {

/// The body of an operation. run() is called once, from any thread; a result other than success becomes the
/// sticky error of the operation's context.
class task {
 public:
  virtual ~task() = default;
  virtual CUresult run() = 0;
};

template <class F>
std::unique_ptr<task> make_task(F body) {
  struct holder final : task {
    explicit holder(F b) : body(std::move(b)) {}
    CUresult run() override { return body(); }
    F body;
  };
  return std::make_unique<holder>(std::move(body));
}

class stream;
struct waiter;
struct idle_thread;

/// One recording of an event. `done` may be read without the lock (it is set with release after `when`).
struct event_point {
  std::atomic<bool> done{false};
  std::chrono::steady_clock::time_point when;
  std::vector<stream*> parked;  // guarded by the scheduler
  std::vector<waiter*> waiters;
};
using point_ptr = std::shared_ptr<event_point>;

/// Work between two changes from legacy to blocking streams or back.
struct phase {
  bool legacy = false;
  std::uint64_t unfinished = 0;
  std::vector<stream*> parked;
};

/// The state that the streams of one context share. The scheduler's lock guards it, except `error` and
/// `cancelled`.
struct stream_group {
  std::list<phase> phases;
  std::uint64_t unfinished = 0;
  std::unordered_set<stream*> busy;
  std::vector<point_ptr> gates;   ///< points for which every later operation waits; done ones are removed
  std::atomic<int> capturing{0};  ///< blocking streams under capture: the legacy stream must not be used
  std::atomic<int> error{CUDA_SUCCESS};  ///< sticky; operations of a failed context are dropped
};
using group_ptr = std::shared_ptr<stream_group>;

enum class stream_kind { legacy, blocking, non_blocking };

/// The attributes that a program has set for a stream (cuStreamSetAttribute).
struct stream_attributes {
  std::mutex mutex;  // guards what follows
  std::map<CUstreamAttrID, CUstreamAttrValue> set;
};

class stream : public std::enable_shared_from_this<stream> {
 public:
  stream(group_ptr group, stream_kind kind) : group_(std::move(group)), kind_(kind) {}
  stream_kind kind() const { return kind_; }
  const group_ptr& group() const { return group_; }

  /// Under capture: what is submitted becomes nodes of a graph (capture.hh, which sets it).
  bool capturing() const { return capturing_.load(std::memory_order_acquire); }
  void set_capturing(bool on) { capturing_.store(on, std::memory_order_release); }

  stream_attributes attributes;

 private:
  friend class scheduler;
  struct operation {
    std::unique_ptr<task> body;  // runs on a thread
    point_ptr wait;              // not before this is done
    point_ptr reach;             // done when this operation is
    phase* in = nullptr;         // null: not ordered with the legacy stream
  };
  enum class state { idle, parked, ready, running };

  const group_ptr group_;
  const stream_kind kind_;
  std::atomic<bool> capturing_{false};
  state state_ = state::idle;
  std::deque<operation> queue_;
  std::uint64_t submitted_ = 0, completed_ = 0;
  std::vector<waiter*> waiters_;
  std::shared_ptr<stream> self_;  // while there is work: the program may have destroyed the stream
};
using stream_ptr = std::shared_ptr<stream>;

class scheduler {
 public:
  explicit scheduler(std::size_t most_threads) : most_threads_(most_threads) {}
  /// Runs or drops what is queued (set the groups' errors first to drop), then ends the threads.
  ~scheduler();

  void submit(const stream_ptr& s, std::unique_ptr<task> body);
  /// Submits a task and returns when it is done. The calling thread runs it if nothing is queued before it.
  void run(const stream_ptr& s, std::unique_ptr<task> body);
  point_ptr record(const stream_ptr& s);
  void wait_event(const stream_ptr& s, point_ptr point);

  /// Makes a point behind all work that the group has now.
  point_ptr record(const group_ptr& group);
  /// Makes all later work of the group wait for the point.
  void wait_event(const group_ptr& group, point_ptr point);

  bool idle(const stream_ptr& s);
  void synchronize(const stream_ptr& s);
  /// Waits for all work that the group has now.
  void synchronize(const group_ptr& group);
  bool idle(const group_ptr& group);
  void synchronize(const point_ptr& point);

  /// Completes a point that is in no stream.
  void reach(const point_ptr& point);

 private:
  using operation = stream::operation;
  void enqueue(stream& s, operation op);
  void advance(stream& s);
  void settle();
  void complete_front(stream& s);
  void reach(event_point& point);
  void run_front(std::unique_lock<std::mutex>& lock, stream& s);
  void help_until(std::unique_lock<std::mutex>& lock, stream& s, std::uint64_t target);
  void make_ready(stream& s);
  void call_a_thread();
  void work();

  const std::size_t most_threads_;
  std::mutex mutex_;
  std::deque<stream*> ready_;
  std::vector<stream*> to_advance_;       // filled and emptied while the lock is held once
  std::vector<idle_thread*> idle_;        // threads that nobody has called yet
  std::size_t threads_on_their_way_ = 0;  // called or just started; each will look at ready_
  bool stopping_ = false;
  std::vector<std::thread> threads_;
};

}  // namespace outboard::device::cpu
