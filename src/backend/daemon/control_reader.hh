// Reads what a worker sends over its control socket, which a stranger's program may have taken over: a few
// messages at a time, and a limited number a second. A worker that breaks the protocol is reported and no
// longer read. Owned by its worker's entry; the daemon's one thread.
#pragma once

#include <functional>
#include <string>

#include "backend/daemon/bounds/bucket.hh"
#include "backend/daemon/control.hh"
#include "backend/daemon/event_loop.hh"

namespace outboard::backend {

class control_reader {
 public:
  /// An error says what is wrong with the message, or with the worker.
  using on_message = std::function<status(control_message&)>;
  using on_breach = std::function<void(const std::string& why)>;

  /// `loop` and `socket` outlive this object. The functions do not destroy it.
  control_reader(event_loop& loop, int socket, on_message message, on_breach breach);
  ~control_reader();
  control_reader(const control_reader&) = delete;
  control_reader& operator=(const control_reader&) = delete;

  status start();
  /// The process has ended, but its socket may still hold messages. There are no more breaches.
  void read_last();

 private:
  enum class progress : std::uint8_t { read, nothing_there, over };

  status watch();
  void on_readable();
  void pause();
  progress read_one();
  void stop();
  void breach(const std::string& why);

  event_loop& loop_;
  const int socket_;
  on_message on_message_;
  on_breach on_breach_;
  bucket messages_;
  event_loop::id watch_ = 0, timer_ = 0;
  bool over_ = false, process_ended_ = false;
};

}  // namespace outboard::backend
