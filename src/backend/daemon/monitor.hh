// The daemon's end of the helper process that answers NVML for all clients. The helper is started when the
// first client asks, or a little after the start of a daemon that serves for long, and again when it has
// ended; one that could not confine itself, after a pause in which clients are refused. It learns of every
// session, so that it can show clients their own processes. Owned by the daemon; its one thread.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "backend/daemon/event_loop.hh"
#include "backend/daemon/guests.hh"
#include "backend/daemon/workers/child.hh"
#include "backend/daemon/workers/workers.hh"

namespace outboard::backend {

struct monitor_settings {
  worker_command command;
  std::string device;                ///< "vendor", "cpu", "mock"
  std::vector<std::string> visible;  ///< PCI addresses of the devices that the daemon lends
  bool in_order = false;             ///< clients see them in that order, else in NVML's own
  confine_choice confine = confine_choice::automatic;
  variable_source own_environment;
};

class monitor final : public session_watcher {
 public:
  /// `loop` and `w` outlive this object.
  monitor(event_loop& loop, monitor_settings settings, workers& w);
  ~monitor() override;

  std::optional<wire::refusal> begin(accepted_session&& client);
  /// Ends the connections of persons that may no longer connect.
  void end_some(const std::function<bool(const proven_identity&)>& may_not);
  /// Starts the helper unless it runs: nvmlInit of a real driver takes tens of milliseconds.
  status start();

  void session_began(const session_info& session, int activity) override;
  void session_over(pid_t worker) override;
  void other_child_ended(pid_t process, int wait_status) override;

 private:
  /// A client whose connection may be ended while it asks.
  struct revocable {
    proven_identity who;
    unique_fd connection;    ///< ours; the helper has another of it
    bool encrypted = false;  ///< it hears from the helper alone
    event_loop::id watch = 0;
  };

  void remember(std::uint64_t id, const accepted_session& client);
  void forget_client(std::uint64_t id);
  status send(control_kind kind, const std::vector<std::byte>& payload, int descriptor);
  void forget_helper();
  void refuse_all(const std::string& why);

  event_loop& loop_;
  monitor_settings settings_;
  workers& workers_;
  child helper_;
  event_loop::clock::time_point not_before_{};  ///< another one is started
  std::uint64_t next_client_ = 1;
  std::map<std::uint64_t, revocable> revocable_;
};

}  // namespace outboard::backend
