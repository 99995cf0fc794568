// The daemon's side of its gate: starts it, gives it the listening sockets, takes the clients that it passes
// on, starts it again if it ends, and replaces it when a certificate's file has changed. Owned by the daemon;
// its one thread.
#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "backend/daemon/control.hh"
#include "backend/daemon/event_loop.hh"
#include "backend/daemon/guests.hh"
#include "backend/daemon/workers/child.hh"
#include "backend/daemon/workers/workers.hh"
#include "backend/gate/gate_messages.hh"
#include "base/file_stamp.hh"

namespace outboard::backend {

class gate_keeper {
 public:
  using on_arrival = std::function<void(gate_arrival&&)>;

  /// Loading and making keys takes milliseconds; a machine that is starting up may take long.
  static constexpr std::chrono::milliseconds start_patience{20000};

  /// `patience`: how long a gate may take to start.
  gate_keeper(event_loop& loop, worker_command command, variable_source own_environment, on_arrival arrived,
              std::chrono::milliseconds patience = start_patience)
      : loop_(loop),
        command_(std::move(command)),
        own_environment_(std::move(own_environment)),
        arrived_(std::move(arrived)),
        patience_(patience) {}
  ~gate_keeper();
  gate_keeper(const gate_keeper&) = delete;

  /// Starts the gate and waits until it has its certificate, which only the daemon's own start does. An error
  /// says what is wrong with that.
  status start(const gate_begin_message& terms);
  bool started() const { return started_; }
  /// Gives it a listening socket, which stays the caller's.
  status serve(int listening, const gate_listen_message& about);

  /// Begins to replace the gate if a file has changed. What is wrong with the new certificate is logged, and
  /// the old one stays.
  void reload();
  /// Clients must show a certificate or need not, as soon as there is a gate that knows: it depends on
  /// whether there are tokens. Said again until then.
  void require_certificates(bool required);
  const gate_ready_message& facts() const { return facts_; }

 private:
  struct running {
    child process;
    event_loop::id watch = 0;
    gate_arrival half;  ///< whose local socket comes next
  };
  enum class reason : std::uint8_t { first, ended, new_files, new_terms };
  /// A gate that has not said yet what it has.
  struct starting {
    std::unique_ptr<running> gate;
    reason why = reason::first;
    event_loop::id deadline = 0;
  };
  struct served {
    int listening = -1;
    gate_listen_message about;
  };

  result<std::unique_ptr<running>> launch();
  result<gate_ready_message> take_answer(const running& from);
  status take_over(std::unique_ptr<running> next, gate_ready_message facts);
  void begin(reason why);
  status watch_start(reason why);
  void started_or_not();
  void came(reason why);
  void did_not_come(reason why, const std::string& problem);
  void on_control(running& from);
  void ended(running& one);
  std::vector<file_stamp> stamps() const;

  event_loop& loop_;
  worker_command command_;
  variable_source own_environment_;
  on_arrival arrived_;
  gate_begin_message terms_;
  gate_ready_message facts_;
  bool started_ = false;
  std::chrono::milliseconds patience_;
  std::unique_ptr<running> now_;
  starting next_;
  std::vector<std::unique_ptr<running>> before_;  ///< they finish what they have begun
  std::vector<served> served_;
  std::vector<file_stamp> stamps_;
  std::chrono::milliseconds delay_{0};
  event_loop::clock::time_point began_;
};

}  // namespace outboard::backend
