// The daemon's side of its gate: starts it, gives it the listening sockets, takes the clients that it passes
// on, starts it again if it ends, and replaces it when a certificate's file has changed. Owned by the daemon;
// its one thread.
#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "backend/child.hh"
#include "backend/control.hh"
#include "backend/event_loop.hh"
#include "backend/gate_messages.hh"
#include "backend/guests.hh"
#include "backend/workers.hh"

namespace outboard::backend {

class gate_keeper {
 public:
  using on_arrival = std::function<void(gate_arrival&&)>;

  gate_keeper(event_loop& loop, worker_command command, variable_source own_environment, on_arrival arrived)
      : loop_(loop),
        command_(std::move(command)),
        own_environment_(std::move(own_environment)),
        arrived_(std::move(arrived)) {}
  ~gate_keeper();
  gate_keeper(const gate_keeper&) = delete;

  /// Starts the gate and waits until it has its certificate. An error says what is wrong with that.
  status start(const gate_begin_message& terms);
  bool started() const { return started_; }
  /// Gives it a listening socket, which stays the caller's.
  status serve(int listening, const gate_listen_message& about);

  /// Replaces the gate if a file has changed. What is wrong with the new certificate is logged, and the old
  /// one stays.
  void reload();
  /// From now on clients must show a certificate or need not: it depends on whether there are tokens.
  void require_certificates(bool required);
  const gate_ready_message& facts() const { return facts_; }

 private:
  struct running {
    child process;
    event_loop::id watch = 0;
    gate_arrival half;  ///< whose local socket comes next
  };
  struct served {
    int listening = -1;
    gate_listen_message about;
  };

  result<std::unique_ptr<running>> launch();
  status take_over(std::unique_ptr<running> next);
  void on_control(running& from);
  void ended(running& one);
  void begin_again();
  bool replace(const char* what);
  std::vector<std::int64_t> stamps() const;

  event_loop& loop_;
  worker_command command_;
  variable_source own_environment_;
  on_arrival arrived_;
  gate_begin_message terms_;
  gate_ready_message facts_;
  bool started_ = false;
  std::unique_ptr<running> now_;
  std::vector<std::unique_ptr<running>> before_;  ///< they finish what they have begun
  std::vector<served> served_;
  std::vector<std::int64_t> stamps_;
  std::chrono::milliseconds delay_{0};
  event_loop::clock::time_point began_;
};

}  // namespace outboard::backend
