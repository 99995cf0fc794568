// The worker processes of a daemon: it starts one for each session, keeps warm ones ready, and notices how
// each ends. A worker that crashes or hangs costs its own session and nothing else. Owned by the daemon; its
// one thread.
#pragma once

#include <sys/types.h>

#include <array>
#include <chrono>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "backend/daemon/broker.hh"
#include "backend/daemon/child.hh"
#include "backend/daemon/compiler_caches.hh"
#include "backend/daemon/control.hh"
#include "backend/daemon/event_loop.hh"
#include "backend/daemon/guests.hh"
#include "backend/daemon/pool.hh"
#include "backend/daemon/queue/session_queue.hh"
#include "backend/daemon/session_folders.hh"
#include "backend/identity/memory_accounts.hh"

#include "backend/daemon/worker_environment.hh"
#include "backend/worker/activity.hh"
#include "base/config.hh"
#include "wire/resume.hh"

namespace outboard::backend {

/// How to start a worker: our own binary, and the arguments that all workers get. More are appended to them.
struct worker_command {
  std::string program;
  std::vector<std::string> arguments;
};

struct worker_settings {
  worker_command command;
  std::string device;              ///< "vendor", "cpu", "mock"
  std::vector<std::string> uuids;  ///< of the devices, for CUDA_VISIBLE_DEVICES
  bool may_occupy_device = true;   ///< false under exclusive compute mode: no warm workers
  limit_settings limits;
  std::function<bool()> several_identities = [] { return false; };  ///< do people share this server?
  pool_settings pool;
  confine_choice confine = confine_choice::automatic;       ///< of OpenCL sessions
  confine_choice confine_cuda = confine_choice::automatic;  ///< of CUDA sessions
  compiler_cache_settings compiler_cache = {};
  variable_source own_environment;
  audit_log* audit = nullptr;  ///< outlives the workers; null: there is none
};

/// What is known of a session, for lists.
struct session_info {
  std::uint64_t id = 0;    ///< 0: it waits for a place
  std::string credential;  ///< its name
  std::string from, peer, identity, host, user, program, client_product;
  std::int32_t client_process = 0;  ///< as the client reports it
  std::int32_t peer_process = -1;   ///< as the kernel reports it for local sockets
  pid_t worker = -1;                ///< -1: it waits for a place
  bool cuda = true;                 ///< else it speaks OpenCL
  bool warm = false, serving = false;
  /// Its client cannot be reached, and the session ends in so many seconds unless that changes.
  std::optional<double> ends_in = std::nullopt;
  std::chrono::system_clock::time_point started;
  std::vector<std::pair<std::string, std::string>> environment;
  /// The memory that it holds on all devices; nothing if it does not report that.
  std::optional<std::uint64_t> memory_bytes = std::nullopt;
  std::uint64_t host_memory_bytes = 0;  ///< of the server's own, as its worker says
};

/// Is notified of sessions and of children that are not workers. Owned by the daemon, as the workers are.
class session_watcher {
 public:
  virtual ~session_watcher() = default;
  /// `activity`: its activity page (activity.hh), or -1. `memory`: its identity's page of memory, with its
  /// slot.
  virtual void session_began(const session_info& session, int activity, const memory_lease& memory) = 0;
  virtual void session_over(pid_t worker) = 0;
  virtual void other_child_ended(pid_t process, int wait_status) = 0;
};

struct warm_info {
  pid_t worker = -1;
  bool ready = false;
  ready_message about;
  std::vector<std::pair<std::string, std::string>> environment;
  std::chrono::system_clock::time_point started;
};

struct worker_totals {
  std::uint64_t sessions = 0, failed = 0, crashed = 0;
  double seconds = 0;  ///< sum of all ended sessions
};

class workers {
 public:
  /// `changed` is called when a session has ended.
  workers(event_loop& loop, worker_settings settings, std::function<void()> changed);
  ~workers();

  /// Starts the session at once or, if `limits.running` sessions run, when it has its turn.
  std::optional<wire::refusal> begin_session(accepted_session&& session);

  /// Adds a connection to a session of the same identity, encrypted if that is; its worker asks for it by the
  /// token that the guest gets.
  std::optional<wire::refusal> add_data_connection(accepted_session&& guest);

  /// Ends the sessions of a credential that is no more at once, running and waiting ones.
  void end_credential(const std::string& name, const std::string& why);
  /// Ends one session that runs. False: there is none of this number.
  bool end_session(std::uint64_t session, const std::string& why);
  /// From now on these limits count, and for each session what `terms_of` says of its credential. Sessions
  /// that may no longer run end at once; those that may keep the name of their identity.
  void change(const limit_settings& limits, const std::function<shared_terms(const credential&)>& terms_of);
  /// A client whose link broke comes back, or `outboard run` says that its program is dead. What has not
  /// proven the session's secret is refused without a hint of what exists.
  std::optional<wire::refusal> resume(accepted_session&& guest);

  /// Stops new sessions and warm workers.
  void drain();
  /// Ends the workers that are left, by SIGKILL if SIGTERM is not enough, and waits for them.
  void stop();

  void set_watcher(session_watcher* watcher) { watcher_ = watcher; }
  /// Reports the sessions that exist already.
  void tell_all(session_watcher& watcher) const;

  /// After SIGCHLD: takes the processes that have ended.
  void reap();

  std::size_t sessions() const { return sessions_; }
  std::size_t waiting() const { return queue_.length(); }
  /// Tells a client that waits for a place about the queue; "" if none of its sessions waits.
  std::string describe_queue(const asker& who) const;
  /// Finds the session that serves this process of this host, among those of one identity. Over local sockets
  /// the kernel must report the same number, so that nobody can pose as another process.
  std::optional<session_info> find_session(const std::string& identity, const std::string& host,
                                           std::int32_t process) const;
  /// Returns null if there is no such session, or its worker cannot be held.
  session_hold* hold_of(std::uint64_t session) const;

  /// Those that run, then those that wait for a place.
  std::vector<session_info> list_sessions() const;
  std::vector<warm_info> list_warm() const;
  /// What all sessions of one identity hold.
  held_memory held_by(const std::string& identity) const { return accounts_.held(identity); }
  const pool::counts& pool_counts() const { return pool_.counted(); }
  const worker_totals& totals() const { return totals_; }

 private:
  using worker_id = std::uint64_t;
  struct worker;

  std::size_t sessions_of(const std::string& identity) const;
  std::size_t most_of(const identity_terms& who) const;
  taken_places taken() const;
  std::optional<wire::refusal> no_room_for(const accepted_session& session) const;
  variables driver_variables(const accepted_session& session) const;
  std::optional<wire::refusal> give_worker(accepted_session& session);
  void call_next();
  /// What a worker does before it gets its session: nothing, make a context, or open OpenCL.
  enum class readiness : std::uint8_t { cold, warm, opencl };
  result<worker*> start_worker(const variables& driver, readiness how,
                               std::optional<cache_lease> kept = std::nullopt);
  confine_choice confine_of(bool cuda) const { return cuda ? settings_.confine_cuda : settings_.confine; }
  bool may_serve(bool cuda);
  result<child> start_helper(std::vector<std::string> what);
  std::vector<std::string> environment_of(const worker& w, const variables& driver,
                                          const std::optional<cache_lease>& kept) const;
  worker* find_warm(const std::string& key);
  status assign(worker& w, accepted_session& session);
  memory_limits limits_of_memory(const std::string& identity, const identity_terms* joins) const;
  status give(worker& w, const accepted_session& session);
  std::size_t to_warm_up(const std::string& key) const;
  void warm_up(const std::string& key, const variables& driver);
  void warm_up_soon(const worker& like);
  void schedule_drops();
  void end_idle(worker_id id);
  status on_message(worker& w, control_message& m);
  void end_for_breach(worker& w, const std::string& why);
  void on_client_gone(worker_id id);
  void end_now(worker& w, const std::string& why);
  void end_soon(worker_id id, event_loop::clock::duration patience);
  status watch_client(worker& w);
  status open_door(worker& w, const wire::hello& hello);
  status on_link(worker& w, bool interrupted);
  worker* longest_away(const std::string* identity) const;
  void give_way(worker& w, const char* to);
  bool make_way(const std::string* identity);
  status make_room(worker& asking);
  void answer_for_room(const worker& gone);
  worker* find_proven(const accepted_session& guest, const wire::proven_question& asked);
  static bool may_join(const worker& w, const accepted_session& guest);
  std::optional<wire::refusal> pass_on(worker& w, accepted_session& guest, const wire::resume_question& m);
  void kill_if_there(worker_id id, int signal);
  void ended(worker& w, int wait_status);
  bool begin_again(worker& w, int wait_status);
  void ended_session(worker& w, int wait_status);
  void audit(const worker& w, std::string_view did, const std::string& why) const;

  event_loop& loop_;
  worker_settings settings_;
  std::function<void()> changed_;
  pool pool_;
  bounded_log queue_log_;
  session_queue queue_;
  std::map<worker_id, std::unique_ptr<worker>> workers_;
  std::map<pid_t, worker_id> by_process_;
  worker_id next_worker_ = 1;
  std::uint64_t next_session_ = 1;
  std::size_t sessions_ = 0;
  worker_totals totals_;
  memory_accounts accounts_;
  broker broker_;
  session_folders folders_;
  compiler_caches compiler_caches_;
  std::array<bool, 2> reported_confinement_{};  ///< of OpenCL's and CUDA's sessions
  event_loop::id drop_timer_ = 0;
  bool draining_ = false;
  session_watcher* watcher_ = nullptr;
};

}  // namespace outboard::backend
