// The order of work on the cpu device: streams are queues of operations, events are points in them, a small
// set of threads runs what is ready. One lock guards all queues and is never held while an operation runs.
// Any thread; owned by the machine.
//
// The legacy default stream: operations of it and of blocking streams of one context are numbered into
// alternating phases (all blocking streams | the legacy stream | blocking streams ...); an operation may run
// once its phase is the oldest with unfinished work. So an operation costs the same however many streams
// there are.
#pragma once

#include <atomic>
#include <chrono>
#include <condition_variable>
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

/// The body of an operation. run() is called once, from any thread; its result other than success is sticky
/// in the operation's context.
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

/// What the streams of one context have in common. Guarded by the scheduler, but `error` and `cancelled`.
struct stream_group {
  std::list<phase> phases;
  std::uint64_t unfinished = 0;
  std::unordered_set<stream*> busy;
  std::vector<point_ptr> gates;   ///< what every operation waits for that comes now; done ones go
  std::atomic<int> capturing{0};  ///< blocking streams under capture: the legacy stream must not be used
  std::atomic<int> error{CUDA_SUCCESS};  ///< sticky; operations of a failed context are dropped
};
using group_ptr = std::shared_ptr<stream_group>;

enum class stream_kind { legacy, blocking, non_blocking };

/// What a program has set of a stream (cuStreamSetAttribute).
struct stream_attributes {
  std::mutex mutex;  // guards what follows
  std::map<CUstreamAttrID, CUstreamAttrValue> set;
};

class stream : public std::enable_shared_from_this<stream> {
 public:
  stream(group_ptr group, stream_kind kind);
  std::uint32_t number() const { return number_; }  ///< as profilers show it: of all of the process
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
    std::uint64_t request = 0;   // that left it, for a profiler
  };
  enum class state { idle, parked, ready, running };

  const group_ptr group_;
  const stream_kind kind_;
  const std::uint32_t number_;
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
  /// Submits and returns when it is done; the calling thread runs it itself where nothing is before it.
  void run(const stream_ptr& s, std::unique_ptr<task> body);
  point_ptr record(const stream_ptr& s);
  void wait_event(const stream_ptr& s, point_ptr point);

  /// A point behind all work that the group has now.
  point_ptr record(const group_ptr& group);
  /// All later work of the group waits for the point.
  void wait_event(const group_ptr& group, point_ptr point);

  bool idle(const stream_ptr& s);
  void synchronize(const stream_ptr& s);
  /// Waits for all work that the group has now.
  void synchronize(const group_ptr& group);
  bool idle(const group_ptr& group);
  void synchronize(const point_ptr& point);

  /// A point in no stream: done when reach() says so.
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
  void work();

  const std::size_t most_threads_;
  std::mutex mutex_;
  std::condition_variable some_ready_;
  std::deque<stream*> ready_;
  std::vector<stream*> to_advance_;  // filled and emptied under one holding of the lock
  std::size_t idle_threads_ = 0;
  bool stopping_ = false;
  std::vector<std::thread> threads_;
};

}  // namespace outboard::device::cpu
