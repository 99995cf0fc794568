#include "backend/host_calls.hh"

#include <utility>

namespace outboard::backend {

struct host_calls::shared {
  struct errand {
    std::uint64_t number = 0;
    marshal::callback_body body;
  };

  std::mutex mutex;
  std::condition_variable changed;  // an errand to serve, an answer, the end
  std::deque<errand> errands;
  std::set<std::uint64_t> unanswered;
  std::uint64_t last_number = 0;
  bool ended = false;
  bool served = false;  // the serving thread has been started

  void add(marshal::callback_body body, bool wait) {
    std::unique_lock lock(mutex);
    if (ended) return;
    const std::uint64_t number = wait ? ++last_number : 0;
    if (wait) unanswered.insert(number);
    errands.push_back({number, body});
    changed.notify_all();
    if (wait) changed.wait(lock, [&] { return ended || !unanswered.contains(number); });
  }
};

namespace {

void run_with(host_calls::function* f, CUresult status) {
  using marshal::errand;
  const bool once = f->once;
  f->state->add({errand::run, f->id, static_cast<std::int32_t>(status), once}, true);
  if (once) delete f;
}

}  // namespace

host_calls::host_calls(outside o) : state_(std::make_shared<shared>()), out_(std::move(o)) {}

host_calls::~host_calls() {
  end();
  if (thread_.joinable()) thread_.join();
}

host_calls::function* host_calls::make(std::uint64_t id, bool once) {
  {
    const std::lock_guard lock(state_->mutex);
    if (!std::exchange(state_->served, true)) thread_ = std::thread([this] { serve(); });
  }
  return new function{state_, id, once};
}

void CUDA_CB host_calls::run(void* data) { run_with(static_cast<function*>(data), CUDA_SUCCESS); }

void CUDA_CB host_calls::run_callback(CUstream, CUresult status, void* data) {
  run_with(static_cast<function*>(data), status);
}

void CUDA_CB host_calls::destroyed(void* data) {
  const std::unique_ptr<function> f(static_cast<function*>(data));
  f->state->add({marshal::errand::forget, f->id, 0, false}, false);
}

void host_calls::tell(const marshal::callback_body& errand) {
  {
    const std::lock_guard lock(state_->mutex);
    if (!std::exchange(state_->served, true)) thread_ = std::thread([this] { serve(); });
  }
  state_->add(errand, false);
}

bool host_calls::answered(std::uint64_t number) {
  const std::lock_guard lock(state_->mutex);
  if (state_->unanswered.erase(number) == 0) return false;
  state_->changed.notify_all();
  return true;
}

bool host_calls::waiting() const {
  const std::lock_guard lock(state_->mutex);
  return !state_->unanswered.empty();
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
      next = state_->errands.front();
      state_->errands.pop_front();
    }
    if (next.body.what == marshal::errand::run) out_.flush();
    out_.ask(next.number, next.body);
    if (next.number) out_.asked();
  }
}

}  // namespace outboard::backend
