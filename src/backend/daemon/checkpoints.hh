// The daemon's part in cuCheckpointProcess*: among the sessions of the asker's identity it finds the one with
// the given process number, and has the step carried out. With a driver, a separate process for each question
// names the worker to the driver and answers the client itself. On a device without a driver (cpu, mock) the
// worker does it: it holds its requests while it is locked. Owned by the daemon; its one thread.
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <vector>

#include "backend/daemon/bounds/bounded_log.hh"
#include "backend/daemon/event_loop.hh"
#include "backend/daemon/workers.hh"
#include "wire/checkpoint.hh"

namespace outboard::backend {

struct checkpoint_settings {
  worker_command command;
  std::string device;  ///< "vendor", "cpu", "mock"
  variable_source own_environment;
  audit_log* audit = nullptr;  ///< outlives the checkpoints; null: there is none
};

class checkpoints {
 public:
  /// `loop` and `w` outlive this object.
  checkpoints(event_loop& loop, checkpoint_settings settings, workers& w);
  ~checkpoints();

  std::optional<wire::refusal> begin(accepted_session&& asker);

 private:
  struct waiting;
  using asker_id = std::uint64_t;

  std::optional<wire::refusal> ask_driver(accepted_session& asker, const wire::checkpoint_question& q,
                                          pid_t worker);
  void step(asker_id id);
  void look_again(asker_id id);
  void answer(asker_id id, std::int32_t code, std::int32_t state = 0);

  event_loop& loop_;
  checkpoint_settings settings_;
  workers& workers_;
  bounded_log log_;
  std::vector<unique_fd>
      helpers_;  ///< control sockets of processes that call the driver; each ends with its own
  std::map<asker_id, std::unique_ptr<waiting>> askers_;  ///< only on devices without a driver
  asker_id next_ = 1;
};

}  // namespace outboard::backend
