// The daemon's end of the helper process that answers NVML for all clients. The helper is started when the
// first client asks, or soon after the start of a daemon that serves for long, and again after it has ended.
// It learns of every session, so that it can show clients their own processes. Owned by the daemon; its one
// thread.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "backend/daemon/child.hh"
#include "backend/daemon/guests.hh"
#include "backend/daemon/workers.hh"

namespace outboard::backend {

struct monitor_settings {
  worker_command command;
  std::string device;                ///< "vendor", "cpu", "mock"
  std::vector<std::string> visible;  ///< PCI addresses of the devices that the daemon lends
  bool in_order = false;             ///< clients see them in that order, else in NVML's own
  variable_source own_environment;
};

class monitor final : public session_watcher {
 public:
  /// `w` outlives this object.
  monitor(monitor_settings settings, workers& w);
  ~monitor() override;

  std::optional<wire::refusal> begin(accepted_session&& client);
  /// Starts the helper unless it runs: nvmlInit of a real driver takes tens of milliseconds.
  status start();

  void session_began(const session_info& session, int activity, const memory_lease& memory) override;
  void session_over(pid_t worker) override;
  void other_child_ended(pid_t process, int wait_status) override;

 private:
  status send(control_kind kind, const std::vector<std::byte>& payload, int descriptor);
  void forget_helper();

  monitor_settings settings_;
  workers& workers_;
  child helper_;
  std::uint64_t next_client_ = 1;
};

}  // namespace outboard::backend
