#include "backend/cuda/code/image_keeper.hh"

#include <sys/prctl.h>

#include "base/blocked_signals.hh"
#include "base/log.hh"

namespace outboard::backend {

image_scope scope_of(const std::string& identity, std::span<const std::byte> secret) {
  return hmac_sha256(secret, std::as_bytes(std::span(identity)));
}

void image_keeper::open(image_cache* cache, const image_terms& terms) {
  cache_ = cache;
  terms_ = terms;
}

std::optional<std::vector<std::byte>> image_keeper::find(const marshal::image_name& name,
                                                         const marshal::image_proof& proof) const {
  if (!cache_) return std::nullopt;
  auto found = cache_->find(terms_.scope, name);
  if (!found) return std::nullopt;
  const marshal::image_proof right = marshal::proof_of(found->key, terms_.challenge);
  if (equal_in_constant_time(std::as_bytes(std::span(proof)), std::as_bytes(std::span(right))))
    return std::move(found->bytes);
  log::warn("a client names a module image that it does not have: it gets none");
  return std::nullopt;
}

void image_keeper::keep(std::shared_ptr<const loaded_code> code) {
  if (!cache_) return;
  const std::lock_guard lock(mutex_);
  if (ended_) return;
  waiting_.push_back(std::move(code));
  changed_.notify_all();
  if (!thread_.joinable()) thread_ = std::thread([this] { work(); });
}

void image_keeper::work() {
  ::prctl(PR_SET_NAME, "outboard-images");
  std::unique_lock lock(mutex_);
  while (true) {
    changed_.wait(lock, [&] { return ended_ || !waiting_.empty(); });
    if (waiting_.empty() || stop_.load()) return;
    const auto code = std::move(waiting_.front());
    waiting_.pop_front();
    writing_ = true;
    lock.unlock();
    cache_->store(terms_.scope, code->image.encoded(), stop_);
    lock.lock();
    writing_ = false;
    changed_.notify_all();
  }
}

void image_keeper::end(std::chrono::milliseconds patience) {
  {
    std::unique_lock lock(mutex_);
    ended_ = true;
    changed_.notify_all();
    changed_.wait_for(lock, patience, [&] { return waiting_.empty() && !writing_; });
    stop_.store(true);
  }
  if (thread_.joinable()) thread_.join();
}

}  // namespace outboard::backend
