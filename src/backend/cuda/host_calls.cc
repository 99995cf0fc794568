#include "backend/cuda/host_calls.hh"

#include <algorithm>
#include <condition_variable>
#include <cstring>
#include <deque>
#include <iterator>
#include <map>
#include <mutex>
#include <utility>

namespace outboard::backend {

struct host_calls::shared {
  struct errand {
    std::uint64_t number = 0;  ///< 0: nobody waits
    marshal::callback_body body;
    std::vector<boxed_bytes> first = {};    ///< sent before it
    std::shared_ptr<const void> held = {};  ///< has them
  };

  std::mutex mutex;
  std::condition_variable changed;  // an errand to serve, an answer, the end
  std::deque<errand> errands;
  struct waiting {
    bool asked = false;               ///< the client; else it is only told
    std::vector<boxed_bytes> brings;  ///< by its answer
  };
  std::map<std::uint64_t, waiting> unanswered;
  std::uint64_t last_number = 0;
  bool ended = false;
  bool served = false;   // the serving thread has been started
  bool sending = false;  // it has taken an errand, and not sent it yet
  std::map<const std::byte*, unsigned>
      sent;  // blocks that launches under way have sent: behind how many copies

  /// With the lock. Those that were not sent since they were written: sent again, they would undo what the
  /// client has made of them.
  std::vector<boxed_bytes> take_unsent(const std::vector<boxed_bytes>& blocks) {
    std::vector<boxed_bytes> left;
    std::ranges::copy_if(blocks, std::back_inserter(left), [&](const boxed_bytes& b) {
      unsigned& behind = sent[b.data];
      return b.times > std::exchange(behind, std::max(behind, b.times));
    });
    return left;
  }

  /// With the lock. Waits until the errand is done, if `wait`.
  void add(std::unique_lock<std::mutex>& lock, errand e, bool wait, std::vector<boxed_bytes> wanted = {}) {
    if (ended) return;
    const std::uint64_t number = e.number = wait ? ++last_number : 0;
    for (const boxed_bytes& b : wanted) e.body.wanted.push_back(b.id);
    if (wait) unanswered[number] = {e.body.what == marshal::errand::run, std::move(wanted)};
    errands.push_back(std::move(e));
    changed.notify_all();
    if (wait) changed.wait(lock, [&] { return ended || !unanswered.contains(number); });
  }
};

namespace {

using marshal::errand;

void run_with(host_calls::function* f, CUresult status) {
  const std::shared_ptr<host_calls::shared> state = f->state;
  const bool once = f->once;
  {
    std::unique_lock lock(state->mutex);
    state->add(
        lock,
        {0, {errand::run, f->id, static_cast<std::int32_t>(status), once, {}}, state->take_unsent(f->before)},
        true, f->after);
  }
  if (once) delete f;
}

struct launch_end {
  std::shared_ptr<host_calls::shared> state;
  std::vector<boxed_bytes> targets;
  std::shared_ptr<const void> held;
};

}  // namespace

host_calls::host_calls(outside o) : state_(std::make_shared<shared>()), out_(std::move(o)) {}

host_calls::~host_calls() {
  end();
  join();
}

void host_calls::start() {
  const std::lock_guard lock(state_->mutex);
  if (!std::exchange(state_->served, true)) thread_ = std::thread([this] { serve(); });
}

host_calls::function* host_calls::make(std::uint64_t id, bool once) {
  start();
  return new function{state_, id, once, {}, {}};
}

host_calls::function* host_calls::with_blocks(const function& of, std::vector<boxed_bytes> before,
                                              std::vector<boxed_bytes> after) {
  return new function{of.state, of.id, of.once, std::move(before), std::move(after), false};
}

void CUDA_CB host_calls::run(void* data) { run_with(static_cast<function*>(data), CUDA_SUCCESS); }

void CUDA_CB host_calls::run_callback(CUstream, CUresult status, void* data) {
  run_with(static_cast<function*>(data), status);
}

void CUDA_CB host_calls::run_destructor(void* data) {
  const std::unique_ptr<function> f(static_cast<function*>(data));
  std::unique_lock lock(f->state->mutex);
  f->state->add(lock, {0, {errand::run, f->id, 0, true, {}}}, false);
}

void CUDA_CB host_calls::destroyed(void* data) {
  const std::unique_ptr<function> f(static_cast<function*>(data));
  if (!f->named) return;
  std::unique_lock lock(f->state->mutex);
  f->state->add(lock, {0, {errand::forget, f->id, 0, false, {}}}, false);
}

void* host_calls::make_end(std::vector<boxed_bytes> targets, std::shared_ptr<const void> held) {
  start();
  return new launch_end{state_, std::move(targets), std::move(held)};
}

void host_calls::drop_end(void* data) { delete static_cast<launch_end*>(data); }

void CUDA_CB host_calls::run_end(void* data) {
  const std::unique_ptr<launch_end> e(static_cast<launch_end*>(data));
  std::unique_lock lock(e->state->mutex);
  std::vector<boxed_bytes> left = e->state->take_unsent(e->targets);
  for (const boxed_bytes& b : e->targets) e->state->sent.erase(b.data);  // the next launch writes them anew
  e->state->add(lock, {0, {errand::keep, 0, 0, true, {}}, std::move(left), e->held}, true);
}

std::function<void(const marshal::callback_body&)> host_calls::messenger() {
  start();
  return [state = state_](const marshal::callback_body& body) {
    std::unique_lock lock(state->mutex);
    state->add(lock, {0, body}, false);
  };
}

bool host_calls::answered(std::uint64_t number, std::span<const std::byte> bytes) {
  const std::lock_guard lock(state_->mutex);
  const auto found = state_->unanswered.find(number);
  if (found == state_->unanswered.end() || !found->second.asked) return false;
  for (const boxed_bytes& b : found->second.brings) {
    if (bytes.size() < b.size) return false;
    std::memcpy(b.data, bytes.data(), b.size);
    bytes = bytes.subspan(b.size);
  }
  state_->unanswered.erase(found);
  state_->changed.notify_all();
  return bytes.empty();
}

bool host_calls::waiting() const {
  const std::lock_guard lock(state_->mutex);
  return !state_->unanswered.empty();
}

bool host_calls::is_quiet() const {
  const std::lock_guard lock(state_->mutex);
  return state_->unanswered.empty() && state_->errands.empty() && !state_->sending;
}

void host_calls::join() {
  if (thread_.joinable()) thread_.join();
}

void host_calls::end() {
  const std::lock_guard lock(state_->mutex);
  state_->ended = true;
  state_->changed.notify_all();
}

/// A thread of our own, because the driver's may not ask whether copies are finished.
void host_calls::serve() {
  for (;;) {
    shared::errand next;
    {
      std::unique_lock lock(state_->mutex);
      state_->changed.wait(lock, [&] { return state_->ended || !state_->errands.empty(); });
      if (state_->ended) return;
      next = std::move(state_->errands.front());
      state_->errands.pop_front();
      state_->sending = true;
    }
    const bool asks = next.body.what == errand::run;
    // What came before in the stream goes before, too: it may go to the same place.
    if (asks || !next.first.empty()) out_.flush();
    for (const boxed_bytes& b : next.first) out_.send_block(b);
    out_.ask(asks ? next.number : 0, next.body);
    if (asks) out_.asked();
    const std::lock_guard lock(state_->mutex);
    state_->sending = false;
    if (asks || next.number == 0) continue;
    state_->unanswered.erase(next.number);
    state_->changed.notify_all();
  }
}

}  // namespace outboard::backend
