// The daemon's part in cuCheckpointProcess*: it finds the session that a process number means, among those of
// the asker's identity, and has the step done. With a driver, a process of its own for each question tells
// the driver which worker it is and answers the client itself. On a device without a driver (cpu, mock) the
// worker does the step, and holds its requests up while it is locked. Owned by the daemon; its one thread.
#pragma once

#include <map>
#include <memory>
#include <optional>

#include "backend/daemon/bounds/bounded_log.hh"
#include "backend/daemon/event_loop.hh"
#include "backend/daemon/queue/fair_shares.hh"
#include "backend/daemon/workers/child.hh"
#include "backend/daemon/workers/workers.hh"
#include "wire/checkpoint.hh"

namespace outboard::backend {

struct checkpoint_settings {
  worker_command command;
  std::string device;  ///< "vendor", "cpu", "mock"
  variable_source own_environment;
  auditor audit = {};
  confine_choice confine = confine_choice::automatic;
};

class checkpoints {
 public:
  /// `loop` and `w` outlive this object.
  checkpoints(event_loop& loop, checkpoint_settings settings, workers& w);
  ~checkpoints();

  std::optional<wire::refusal> begin(accepted_session&& asker);

  /// Processes that tell the driver, of all identities.
  std::size_t helpers() const { return helpers_.size(); }

 private:
  struct waiting;
  using asker_id = std::uint64_t;
  /// Known by its control socket, which it closes when it ends.
  struct helper {
    child process;
    std::string identity;
    event_loop::id watch = 0;
  };

  std::optional<wire::refusal> ask_driver(accepted_session& asker, const wire::checkpoint_question& q,
                                          const session_info& session);
  void forget_helper(asker_id id);
  void audit(const proven_identity& who, const std::string& from, std::uint64_t session,
             wire::checkpoint_step step) const;
  void step(asker_id id);
  void look_again(asker_id id);
  void answer(asker_id id, std::int32_t code, std::int32_t state = 0);

  event_loop& loop_;
  checkpoint_settings settings_;
  workers& workers_;
  bounded_log log_;
  std::map<asker_id, std::unique_ptr<waiting>> askers_;  ///< of devices without a driver
  std::map<asker_id, helper> helpers_;                   ///< of those with one
  fair_shares places_;                                   ///< for helpers, by identity
  asker_id next_ = 1;
};

}  // namespace outboard::backend
