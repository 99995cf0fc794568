#include "backend/opencl/data_pieces.hh"

#include <algorithm>
#include <chrono>
#include <thread>

#include "backend/opencl/ends.hh"
#include "backend/opencl/short_wait.hh"
#include "backend/session/session_core.hh"

namespace outboard::backend::opencl {

moved_piece::~moved_piece() {
  if (!done_) return;
  const api::opencl::function_table& table = session_->table();
  if (is_over(table, done_)) {
    table.clReleaseEvent(done_);
  } else {
    session_->keep(queue_, done_, std::move(memory_.owner));
  }
}

std::int32_t moved_piece::await() {
  const api::opencl::function_table& table = session_->table();
  complete_in_a_moment(table, done_);
  return table.clWaitForEvents(1, &done_);
}

void data_pieces::add(std::uint64_t id, cl_context context) {
  const std::lock_guard lock(mutex_);
  contexts_[id] = context;
}

std::uint64_t data_pieces::remove(cl_context context) {
  const std::lock_guard lock(mutex_);
  const auto found =
      std::ranges::find_if(contexts_, [=](const auto& each) { return each.second == context; });
  if (found == contexts_.end()) return 0;
  const std::uint64_t id = found->first;
  contexts_.erase(found);
  return id;
}

std::function<void()> data_pieces::enter(std::uint64_t context) {
  const std::lock_guard lock(mutex_);
  if (!contexts_.contains(context)) return {};
  return [] {};
}

/// Most come back while the device copies others; behind a closed gate none does.
host_bytes data_pieces::wait_for_block(cl_context context, std::size_t size) {
  constexpr std::chrono::microseconds patience{500}, look{20};
  const auto until = std::chrono::steady_clock::now() + patience;
  while (true) {
    if (host_bytes block = blocks_.take_locked(context, size); block.data)
      return stuck_.store(false, std::memory_order_relaxed), block;
    if (stuck_.load(std::memory_order_relaxed) || std::chrono::steady_clock::now() >= until) break;
    std::this_thread::sleep_for(look);
    let_go_();
  }
  stuck_.store(true, std::memory_order_relaxed);
  return blocks_.take(nullptr, size);
}

std::unique_ptr<data_piece> data_pieces::take(std::size_t size, std::uint64_t context) {
  cl_context native = nullptr;
  {
    const std::lock_guard lock(mutex_);
    const auto found = contexts_.find(context);
    if (found != contexts_.end()) native = found->second;
  }
  host_bytes block = blocks_.take_locked(native, size);
  if (!block.data) let_go_(), block = wait_for_block(native, size);
  return std::make_unique<moved_piece>(std::move(block));
}

namespace ends {

outcome data_open(call& c) {
  marshal::opencl::connections_body body;
  if (!take_all(c, body) || !well_formed(body.opened)) return outcome::malformed();
  cl_context context = nullptr;
  if (const cl_int code = resolve(c, body.context, context); code != CL_SUCCESS) return outcome::answer(code);
  own(c).prepare_pieces(body.context, context);
  const auto reply = c.core.open_data_connections(body.opened, body.context);
  if (!reply) return outcome::answer(CL_OUT_OF_RESOURCES);
  marshal::put_body(c.reply, *reply);
  return outcome::answer(CL_SUCCESS);
}

/// What makes it worth asking is what precedes every reply.
outcome catch_up(call& c) { return c.body.finished() ? outcome::answer(CL_SUCCESS) : outcome::malformed(); }

}  // namespace ends
}  // namespace outboard::backend::opencl
