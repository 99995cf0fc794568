// What the transports over stream sockets share: a connection and a listener over a descriptor. The
// descriptor's flags are left alone (they are shared with whoever else holds it): every call passes
// MSG_DONTWAIT and waits by poll. Owners and thread rules as in transport.hh.
#pragma once

#include <sys/socket.h>
#include <sys/types.h>

#include <atomic>
#include <memory>
#include <mutex>
#include <string>

#include "base/fd.hh"
#include "transport/spin.hh"
#include "transport/transport.hh"
#include "transport/wakeup.hh"

namespace outboard::transport {

class socket_connection : public connection {
 public:
  io_result send(std::span<const iovec> parts, deadline until) override;
  io_result receive(std::span<std::byte> into, deadline until) override;
  io wait_readable(deadline until) override;
  void interrupt() override { wakeup_.raise(); }
  bool peer_gone() override;
  void shutdown() override;
  void set_spin(std::chrono::microseconds budget) override { spin_ = budget; }
  result<unique_fd> detach() override;
  std::string describe() const override { return name_; }

 protected:
  /// `event` from wakeup::make_event().
  socket_connection(unique_fd socket, unique_fd event, std::string name);

  int descriptor_number() const { return fd_.get(); }
  bool is_shut() const { return shut_.load(std::memory_order_acquire); }

  /// One attempt to read, as recv(): count, 0 at the end, -1 with errno. The one system call of the fast
  /// path.
  virtual ssize_t take(std::span<std::byte> into);
  /// One attempt to receive; timed_out: nothing is there.
  virtual io_result attempt(std::span<std::byte> into);
  /// Waits until an attempt may succeed: done, broken, timed_out, interrupted. Of the receiver.
  virtual io await_bytes(deadline until) { return wait_as_receiver(POLLIN, until); }
  /// True when take() would give something that poll() does not show.
  virtual bool has_kept() const { return false; }
  /// For transports whose peer may vanish in silence: asked every `patience` while waiting.
  virtual bool peer_is_silent() const { return false; }
  void set_patience(std::chrono::milliseconds patience) { patience_ = patience; }

  /// Waits for `events`; done, broken (also a peer found silent), timed_out, interrupted. Of the receiver.
  io wait_as_receiver(short events, deadline until);
  /// Waits for room; done, broken, timed_out. Of the sender.
  io wait_as_sender(deadline until);

  bool interrupt_raised() const { return wakeup_.raised(); }

  std::chrono::microseconds spin_{0};

 private:
  io_result attempt_soon(std::span<std::byte> into);
  io_result attempt_awake(std::span<std::byte> into, deadline until);
  deadline next_look(deadline until) const;

  unique_fd fd_;
  wakeup wakeup_;
  std::string name_;
  spin_habit habit_;  // of the receiver
  std::chrono::milliseconds patience_{0};
  std::atomic<bool> shut_{false};
  // shutdown() may come from any thread: this keeps it from hitting a number that detach() has given away.
  std::mutex descriptor_mutex_;
};

class socket_listener : public listener {
 public:
  result<std::unique_ptr<connection>> accept(deadline until) override;
  void interrupt() override { wakeup_.raise(); }
  int poll_descriptor() const override { return fd_.get(); }
  std::string url() const override { return url_; }

 protected:
  socket_listener(unique_fd socket, unique_fd event, std::string url);
  virtual result<std::unique_ptr<connection>> welcome(unique_fd socket) = 0;

 private:
  unique_fd fd_;
  wakeup wakeup_;
  std::string url_;
};

/// A stream socket of `family` that is closed on exec.
result<unique_fd> make_stream_socket(int family);

/// Checks that fd is a stream socket of one of the families (0 = none), listening or not, and closes it on
/// exec.
status check_stream_socket(int fd, int family, int other_family, bool listening);

/// Milliseconds until the deadline for SO_SNDTIMEO and messages; at least 1, at most a day.
std::chrono::milliseconds time_left(deadline until);

}  // namespace outboard::transport
