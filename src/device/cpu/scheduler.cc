#include "device/cpu/scheduler.hh"

#include <algorithm>

#include "base/blocked_signals.hh"
#include "base/check.hh"
#include "device/cpu/graph/running_node.hh"
#include "device/cpu/recorder.hh"

namespace outboard::device::cpu {

/// A thread that waits for a stream to come as far as `target`, or for a point.
struct waiter {
  std::uint64_t target = 0;
  std::condition_variable reached;
};

stream::stream(group_ptr group, stream_kind kind)
    : group_(std::move(group)), kind_(kind), number_([] {
        static std::atomic<std::uint32_t> last{0};
        return ++last;
      }()) {}

scheduler::~scheduler() {
  {
    std::lock_guard lock(mutex_);
    stopping_ = true;
  }
  some_ready_.notify_all();
  for (std::thread& t : threads_) t.join();
}

// --- submitting
// -----------------------------------------------------------------------------------------------------

void scheduler::enqueue(stream& s, operation op) {
  stream_group& group = *s.group_;
  if (!group.gates.empty()) [[unlikely]] {
    // A point that is not done has its operation already: no gate leads back to this one.
    std::vector<point_ptr> gates = std::move(group.gates);
    std::erase_if(gates, [](const point_ptr& p) { return p->done.load(std::memory_order_acquire); });
    for (const point_ptr& gate : gates) {
      operation wait;
      wait.wait = gate;
      enqueue(s, std::move(wait));
    }
    group.gates = std::move(gates);
  }
  if (s.kind_ != stream_kind::non_blocking) {
    const bool legacy = s.kind_ == stream_kind::legacy;
    if (group.phases.empty()) group.phases.emplace_back();
    // An unfinished last phase of the other kind comes before us; a finished one (it is then the only one) is
    // taken over.
    if (phase& last = group.phases.back(); last.legacy != legacy) {
      if (last.unfinished == 0) {
        last.legacy = legacy;
      } else {
        group.phases.emplace_back().legacy = legacy;
      }
    }
    op.in = &group.phases.back();
    ++op.in->unfinished;
  }
  if (group.unfinished++, s.queue_.empty()) {
    group.busy.insert(&s);
    s.self_ = s.shared_from_this();
  }
  ++s.submitted_;
  s.queue_.push_back(std::move(op));
  if (s.state_ == stream::state::idle) {
    to_advance_.push_back(&s);
    settle();
  }
}

void scheduler::submit(const stream_ptr& s, std::unique_ptr<task> body) {
  std::lock_guard lock(mutex_);
  operation op;
  op.body = std::move(body);
  op.request = request_under_way;
  enqueue(*s, std::move(op));
}

void scheduler::run(const stream_ptr& s, std::unique_ptr<task> body) {
  std::unique_lock lock(mutex_);
  operation op;
  op.body = std::move(body);
  op.request = request_under_way;
  enqueue(*s, std::move(op));
  help_until(lock, *s, s->submitted_);
}

point_ptr scheduler::record(const stream_ptr& s) {
  auto point = std::make_shared<event_point>();
  std::lock_guard lock(mutex_);
  operation op;
  op.reach = point;
  enqueue(*s, std::move(op));
  return point;
}

void scheduler::wait_event(const stream_ptr& s, point_ptr point) {
  if (point->done.load(std::memory_order_acquire)) return;
  std::lock_guard lock(mutex_);
  operation op;
  op.wait = std::move(point);
  enqueue(*s, std::move(op));
}

point_ptr scheduler::record(const group_ptr& group) {
  const auto gathered = std::make_shared<stream>(group, stream_kind::non_blocking);
  std::vector<stream_ptr> busy;
  {
    const std::lock_guard lock(mutex_);
    for (stream* s : group->busy) busy.push_back(s->shared_from_this());
  }
  for (const stream_ptr& s : busy) wait_event(gathered, record(s));
  return record(gathered);
}

void scheduler::wait_event(const group_ptr& group, point_ptr point) {
  const std::lock_guard lock(mutex_);
  group->gates.push_back(std::move(point));
}

// --- what may run
// ---------------------------------------------------------------------------------------------------

void scheduler::settle() {
  while (!to_advance_.empty()) {
    stream* s = to_advance_.back();
    to_advance_.pop_back();
    advance(*s);
  }
}

/// Brings a stream that is not running as far as it can come without a thread.
void scheduler::advance(stream& s) {
  for (;;) {
    s.state_ = stream::state::parked;
    operation& front = s.queue_.front();
    if (front.in != nullptr && front.in != &s.group_->phases.front()) {
      front.in->parked.push_back(&s);
      return;
    }
    if (front.wait != nullptr && !front.wait->done.load(std::memory_order_relaxed)) {
      front.wait->parked.push_back(&s);
      return;
    }
    if (front.body != nullptr) {
      make_ready(s);
      return;
    }
    const stream_ptr alive = s.self_;
    complete_front(s);
    if (s.queue_.empty()) return;
  }
}

void scheduler::make_ready(stream& s) {
  s.state_ = stream::state::ready;
  ready_.push_back(&s);
  if (idle_threads_ >= ready_.size()) {
    some_ready_.notify_one();
  } else if (threads_.size() < most_threads_ && !stopping_) {
    const blocked_signals quiet;
    threads_.emplace_back([this] { work(); });
  }
}

void scheduler::reach(event_point& point) {
  point.when = std::chrono::steady_clock::now();
  point.done.store(true, std::memory_order_release);  // partner: the acquire loads of queries
  to_advance_.insert(to_advance_.end(), point.parked.begin(), point.parked.end());
  point.parked.clear();
  for (waiter* w : point.waiters) w->reached.notify_one();
  point.waiters.clear();
}

/// Takes the finished front operation off; the caller settles.
void scheduler::complete_front(stream& s) {
  const operation done = std::move(s.queue_.front());
  s.queue_.pop_front();
  ++s.completed_;
  if (done.reach != nullptr) reach(*done.reach);
  stream_group& group = *s.group_;
  if (done.in != nullptr && --done.in->unfinished == 0) {
    while (group.phases.size() > 1 && group.phases.front().unfinished == 0) {
      CHECK(group.phases.front().parked.empty());
      group.phases.pop_front();
      std::vector<stream*>& parked = group.phases.front().parked;
      to_advance_.insert(to_advance_.end(), parked.begin(), parked.end());
      parked.clear();
    }
  }
  std::erase_if(s.waiters_, [&](waiter* w) {
    if (w->target > s.completed_) return false;
    w->reached.notify_one();
    return true;
  });
  --group.unfinished;
  if (s.queue_.empty()) {
    s.state_ = stream::state::idle;
    group.busy.erase(&s);
    s.self_.reset();  // callers that go on hold the stream
  }
}

// --- running
// --------------------------------------------------------------------------------------------------------

/// Runs the front operation of a stream that the caller has taken off the ready queue; afterwards the stream
/// is idle, parked or ready again.
void scheduler::run_front(std::unique_lock<std::mutex>& lock, stream& s) {
  const stream_ptr alive = s.self_;
  s.state_ = stream::state::running;
  std::unique_ptr<task> body = std::move(s.queue_.front().body);
  const std::uint64_t before = std::exchange(request_under_way, s.queue_.front().request);
  const std::uint64_t node = std::exchange(running_node(), 0);
  lock.unlock();
  std::atomic<int>& error = s.group_->error;
  if (error.load(std::memory_order_acquire) == CUDA_SUCCESS) {
    int expected = CUDA_SUCCESS;
    running_stream() = s.number();
    if (const CUresult result = body->run(); result != CUDA_SUCCESS) {
      error.compare_exchange_strong(expected, result, std::memory_order_acq_rel);
    }
  }
  body.reset();
  request_under_way = before;  // the thread may wait for a stream in a request of its own
  running_node() = node;       // or in a graph
  lock.lock();
  complete_front(s);
  if (!s.queue_.empty()) to_advance_.push_back(&s);
  settle();
}

void scheduler::work() {
  std::unique_lock lock(mutex_);
  for (;;) {
    while (ready_.empty()) {
      if (stopping_) return;
      ++idle_threads_;
      some_ready_.wait(lock);
      --idle_threads_;
    }
    stream* s = ready_.front();
    ready_.pop_front();
    run_front(lock, *s);
  }
}

void scheduler::help_until(std::unique_lock<std::mutex>& lock, stream& s, std::uint64_t target) {
  while (s.completed_ < target) {
    if (s.state_ == stream::state::ready) {
      ready_.erase(std::ranges::find(ready_, &s));
      run_front(lock, s);
      continue;
    }
    waiter w;
    w.target = target;
    s.waiters_.push_back(&w);
    w.reached.wait(lock, [&] { return s.completed_ >= target; });
  }
}

// --- waiting
// --------------------------------------------------------------------------------------------------------

bool scheduler::idle(const stream_ptr& s) {
  std::lock_guard lock(mutex_);
  return s->queue_.empty();
}

bool scheduler::idle(const group_ptr& group) {
  std::lock_guard lock(mutex_);
  return group->unfinished == 0;
}

void scheduler::synchronize(const stream_ptr& s) {
  std::unique_lock lock(mutex_);
  // Whoever waits for the legacy stream waits for the blocking ones, though there be nothing in it.
  const std::list<phase>& phases = s->group_->phases;
  if (s->kind_ == stream_kind::legacy && !phases.empty() && !phases.back().legacy && phases.back().unfinished)
    enqueue(*s, {});
  help_until(lock, *s, s->submitted_);
}

void scheduler::synchronize(const group_ptr& group) {
  std::unique_lock lock(mutex_);
  std::vector<std::pair<stream_ptr, std::uint64_t>> targets;
  targets.reserve(group->busy.size());
  for (stream* s : group->busy) targets.emplace_back(s->shared_from_this(), s->submitted_);
  for (const auto& [s, target] : targets) help_until(lock, *s, target);
}

void scheduler::reach(const point_ptr& point) {
  std::lock_guard lock(mutex_);
  reach(*point);
  settle();
}

void scheduler::synchronize(const point_ptr& point) {
  std::unique_lock lock(mutex_);
  if (point->done.load(std::memory_order_relaxed)) return;
  waiter w;
  point->waiters.push_back(&w);
  w.reached.wait(lock, [&] { return point->done.load(std::memory_order_relaxed); });
}

}  // namespace outboard::device::cpu
