// Posted copies to the host whose bytes have not been sent yet: each waits in a staging block for its event.
// Before a reply tells the client that work is complete, the bytes of every finished copy go out, so they are
// there first. Any thread (own lock).
#pragma once

#include <atomic>
#include <deque>
#include <functional>
#include <mutex>
#include <utility>
#include <vector>

#include "backend/cuda/copying/staging.hh"

namespace outboard::backend {

class copies_out {
 public:
  /// Fewer bytes are better off on the session's own connection.
  static constexpr std::size_t worth_aside = 64u << 10;

  using send_bytes =
      std::function<void(std::uint64_t ticket, std::uint64_t offset, std::span<const std::byte>)>;
  /// Takes the block, and sends its bytes over another connection, if there is one for it.
  using send_aside = std::function<bool(std::uint64_t ticket, std::uint64_t offset, std::size_t size,
                                        const staging::block&)>;

  copies_out(const api::driver_table& driver, staging& stage, send_bytes send, send_aside aside)
      : driver_(driver), staging_(stage), send_(std::move(send)), aside_(std::move(aside)) {}

  /// `block` holds the bytes once its `done` event is complete.
  void add(std::uint64_t ticket, std::uint64_t offset, std::size_t size, staging::block block);

  /// The context is about to end, and their events with it: the client hears that they bring nothing. The
  /// blocks are the caller's; the device may write to them until it has ended.
  std::vector<staging::block> take_out(std::uint64_t context);

  /// Sends what is finished. True: there was something.
  bool flush();
  /// Bytes that are put together with a reply: those of the copies count until this ends.
  class departure {
   public:
    departure() = default;
    departure(copies_out& from, std::unique_lock<std::mutex> lock) : from_(&from), lock_(std::move(lock)) {}
    departure(departure&& other) noexcept
        : from_(std::exchange(other.from_, nullptr)), lock_(std::move(other.lock_)) {}
    departure& operator=(departure&& other) noexcept {
      std::swap(from_, other.from_), std::swap(lock_, other.lock_);
      return *this;
    }
    ~departure() {
      if (from_) from_->count();
    }

   private:
    copies_out* from_ = nullptr;
    std::unique_lock<std::mutex> lock_;
  };
  /// The same, but what is small goes to `together`, and is sent by the caller before what comes back ends:
  /// over sockets each send costs as much as all the rest of a reply.
  [[nodiscard]] departure flush_with(const send_bytes& together);
  /// Costs no lock. A copy counts until its bytes have left.
  bool empty() const { return count_.load(std::memory_order_acquire) == 0; }

 private:
  struct pending {
    std::uint64_t ticket = 0, offset = 0;
    std::size_t size = 0;
    staging::block block;
  };

  bool flush_locked(const send_bytes& small);
  void count() { count_.store(waiting_.size(), std::memory_order_release); }

  const api::driver_table& driver_;
  staging& staging_;
  send_bytes send_;
  send_aside aside_;
  mutable std::mutex mutex_;
  std::deque<pending> waiting_;
  std::atomic<std::size_t> count_{0};  ///< of them; written with the lock
};

}  // namespace outboard::backend
