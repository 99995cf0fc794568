#include "backend/cuda/copying/copies_out.hh"

#include <algorithm>

#include "backend/cuda/relaxed_capture.hh"
#include "backend/session/data_piece.hh"
#include "wire/frame.hh"

namespace outboard::backend {

void copies_out::add(std::uint64_t ticket, std::uint64_t offset, std::size_t size, staging::block block) {
  const std::lock_guard lock(mutex_);
  waiting_.push_back({ticket, offset, size, block});
  count();
}

std::vector<staging::block> copies_out::take_out(std::uint64_t context) {
  const std::lock_guard lock(mutex_);
  std::vector<staging::block> blocks;
  std::erase_if(waiting_, [&](const pending& copy) {
    if (copy.block.context != context) return false;
    send_(copy.ticket, wire::copy_failed, {});
    blocks.push_back(copy.block);
    return true;
  });
  count();
  return blocks;
}

bool copies_out::flush() {
  // The lock is held while sending: another lane's reply must not overtake these bytes.
  const std::lock_guard lock(mutex_);
  const bool any = flush_locked(send_);
  count();
  return any;
}

copies_out::departure copies_out::flush_with(const send_bytes& together) {
  std::unique_lock lock(mutex_);
  if (!flush_locked(together)) return {};
  return {*this, std::move(lock)};
}

/// With the lock. The caller counts what is left once all has been sent.
bool copies_out::flush_locked(const send_bytes& small) {
  if (waiting_.empty()) return false;
  bool any = false;
  const relaxed_capture relaxed(driver_);
  // The last is asked first: where it is done, so is what it came behind, and that goes out before it.
  std::vector<CUresult> states(waiting_.size());
  for (std::size_t i = states.size(); i-- > 0;) states[i] = driver_.cuEventQuery(waiting_[i].block.done);
  // What leaves with the reply leaves behind all that is sent now: only where that is all of it.
  bool all_small = true;
  for (std::size_t i = 0; i < states.size(); ++i) {
    if (states[i] == CUDA_SUCCESS && waiting_[i].size > goes_with_reply) all_small = false;
  }
  // Of copies whose next bytes are not there yet: those behind them may be by now, but come in their order.
  std::vector<std::uint64_t> held;
  std::size_t asked = 0;
  for (auto at = waiting_.begin(); at != waiting_.end();) {
    const bool behind = std::ranges::find(held, at->ticket) != held.end();
    const CUresult state = behind ? CUDA_ERROR_NOT_READY : states[asked];
    ++asked;
    if (state == CUDA_ERROR_NOT_READY) {
      if (!behind) held.push_back(at->ticket);
      ++at;
      continue;
    }
    any = true;
    const bool gone = state == CUDA_SUCCESS && at->size >= worth_aside &&
                      aside_(at->ticket, at->offset, at->size, at->block);
    if (!gone && state == CUDA_SUCCESS)
      (all_small ? small : send_)(at->ticket, at->offset, {at->block.data, at->size});
    if (!gone && state != CUDA_SUCCESS) send_(at->ticket, wire::copy_failed, {});
    if (!gone) staging_.give_back(at->block);
    at = waiting_.erase(at);
  }
  return any;
}

}  // namespace outboard::backend
