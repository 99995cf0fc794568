// A connection inside one process whose wire can be cut at any byte, with the bytes on the way lost. For
// tests. Owned by the test; threads as in transport.hh, cut() from any thread.
#pragma once

#include <algorithm>
#include <condition_variable>
#include <cstdint>
#include <deque>
#include <limits>
#include <memory>
#include <mutex>
#include <random>
#include <utility>

#include "transport/transport.hh"

namespace outboard::transport::testing {

/// One direction.
class lossy_pipe {
 public:
  static constexpr std::uint64_t never = std::numeric_limits<std::uint64_t>::max();

  explicit lossy_pipe(std::size_t room, std::uint64_t cut_after = never) : room_(room), left_(cut_after) {}

  io_result write(std::span<const std::byte> bytes, deadline until) {
    std::unique_lock lock(mutex_);
    std::size_t done = 0;
    while (done < bytes.size()) {
      if (over_) return {io::broken, done};
      if (left_ == 0) return over_ = true, changed_.notify_all(), io_result{io::broken, done};
      if (queue_.size() < room_) {
        queue_.push_back(bytes[done++]);
        if (left_ != never) --left_;
        continue;
      }
      changed_.notify_all();
      if (!wait(lock, until)) return {io::timed_out, done};
    }
    changed_.notify_all();
    return {io::done, done};
  }

  io_result read(std::span<std::byte> into, deadline until) {
    std::unique_lock lock(mutex_);
    while (queue_.empty()) {
      if (over_) return {orderly_ ? io::closed : io::broken, 0};
      if (std::exchange(interrupted_, false)) return {io::interrupted, 0};
      if (!wait(lock, until)) return {io::timed_out, 0};
    }
    const std::size_t n = std::min(into.size(), queue_.size());
    std::copy_n(queue_.begin(), n, into.begin());
    queue_.erase(queue_.begin(), queue_.begin() + static_cast<std::ptrdiff_t>(n));
    changed_.notify_all();
    return {io::done, n};
  }

  io wait_readable(deadline until) {
    std::unique_lock lock(mutex_);
    while (queue_.empty()) {
      if (over_) return orderly_ ? io::closed : io::broken;
      if (std::exchange(interrupted_, false)) return io::interrupted;
      if (!wait(lock, until)) return io::timed_out;
    }
    return io::done;
  }

  /// What is on the way gets lost, but for the first bytes.
  void cut(std::size_t arrives) {
    const std::lock_guard lock(mutex_);
    over_ = true;
    if (queue_.size() > arrives) queue_.resize(arrives);
    changed_.notify_all();
  }
  void close() {
    const std::lock_guard lock(mutex_);
    over_ = orderly_ = true;
    changed_.notify_all();
  }
  void interrupt() {
    const std::lock_guard lock(mutex_);
    interrupted_ = true;
    changed_.notify_all();
  }
  bool over() {
    const std::lock_guard lock(mutex_);
    return over_;
  }

 private:
  bool wait(std::unique_lock<std::mutex>& lock, deadline until) {
    if (until == no_deadline) return changed_.wait(lock), true;
    return until > clock::now() && changed_.wait_until(lock, until) != std::cv_status::timeout;
  }

  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<std::byte> queue_;
  const std::size_t room_;
  std::uint64_t left_;
  bool over_ = false, orderly_ = false, interrupted_ = false;
};

class lossy_link final : public connection {
 public:
  lossy_link(std::shared_ptr<lossy_pipe> in, std::shared_ptr<lossy_pipe> out)
      : in_(std::move(in)), out_(std::move(out)) {}
  ~lossy_link() override { shutdown(); }

  const capabilities& what() const override {
    static constexpr capabilities all{.detachable = true};
    return all;
  }
  io_result send(std::span<const iovec> parts, deadline until) override {
    std::size_t sent = 0;
    for (const iovec& part : parts) {
      const io_result r = out_->write({static_cast<const std::byte*>(part.iov_base), part.iov_len}, until);
      sent += r.bytes;
      if (r.status != io::done) return {r.status, sent};
    }
    return {io::done, sent};
  }
  io_result receive(std::span<std::byte> into, deadline until) override { return in_->read(into, until); }
  io wait_readable(deadline until) override { return in_->wait_readable(until); }
  void interrupt() override { in_->interrupt(); }
  bool peer_gone() override { return in_->over(); }
  void shutdown() override {
    out_->close();
    in_->cut(0);
  }
  std::string describe() const override { return "lossy"; }

 private:
  std::shared_ptr<lossy_pipe> in_, out_;
};

/// A pair of ends and the wire between them.
struct lossy_wire {
  std::shared_ptr<lossy_pipe> up, down;

  explicit lossy_wire(std::size_t room = 1 << 16, std::uint64_t up_after = lossy_pipe::never,
                      std::uint64_t down_after = lossy_pipe::never)
      : up(std::make_shared<lossy_pipe>(room, up_after)),
        down(std::make_shared<lossy_pipe>(room, down_after)) {}

  std::unique_ptr<connection> client() const { return std::make_unique<lossy_link>(down, up); }
  std::unique_ptr<connection> server() const { return std::make_unique<lossy_link>(up, down); }
  void cut(std::size_t arrives_up = 0, std::size_t arrives_down = 0) const {
    up->cut(arrives_up);
    down->cut(arrives_down);
  }
};

}  // namespace outboard::transport::testing
