// The worker processes of a daemon: one for each session, warm ones in waiting, and how they end. A worker
// that crashes or hangs costs only its own session. Owned by the daemon; its one thread.
#pragma once

#include <sys/types.h>

#include <chrono>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "backend/daemon/audit.hh"
#include "backend/daemon/bounds/short_sessions.hh"
#include "backend/daemon/broker.hh"
#include "backend/daemon/compiler_caches.hh"
#include "backend/daemon/control.hh"
#include "backend/daemon/event_loop.hh"
#include "backend/daemon/guests.hh"
#include "backend/daemon/queue/seats.hh"
#include "backend/daemon/queue/waiting_line.hh"
#include "backend/daemon/session_folders.hh"
#include "backend/daemon/workers/child.hh"
#include "backend/daemon/workers/control_groups.hh"
#include "backend/daemon/workers/pool.hh"
#include "backend/daemon/workers/worker_environment.hh"
#include "backend/worker/activity.hh"
#include "backend/worker/shared_account.hh"
#include "base/configuration/config.hh"
#include "wire/resume.hh"

namespace outboard::backend {

struct room_message;

/// How to start a worker: our own binary and the arguments of every worker. More arguments are appended.
struct worker_command {
  std::string program;
  std::vector<std::string> arguments;
};

struct worker_settings {
  worker_command command;
  std::string device;                      ///< "vendor", "cpu", "mock"
  std::vector<std::string> uuids;          ///< of the devices, for CUDA_VISIBLE_DEVICES
  std::vector<std::uint64_t> boards = {};  ///< of them (board_number()), in their order
  bool may_occupy_device = true;           ///< false under exclusive compute mode: no warm workers
  bool reaches_all_memory = false;         ///< probe.hh
  limit_settings limits;
  pool_settings pool;
  confine_choice confine = confine_choice::automatic;
  compiler_cache_settings compiler_cache = {};
  std::optional<own_group> group = std::nullopt;  ///< divided among workers; nothing: they have none
  variable_source own_environment;
  auditor audit = {};
};

/// What is known of a session, for lists.
struct session_info {
  std::uint64_t id = 0;
  std::string from, peer, identity, host, user, program, client_product;
  share_ptr has;                    ///< whose share it counts for
  std::int32_t client_process = 0;  ///< by the client's own word
  std::int32_t peer_process = -1;   ///< by the kernel's, where it vouches
  pid_t worker = -1;
  bool warm = false, serving = false;
  bool cuda = true;  ///< false: OpenCL
  std::chrono::system_clock::time_point started;
  std::vector<std::pair<std::string, std::string>> environment;
  /// What it holds of all devices; nothing: it does not report that.
  std::optional<std::uint64_t> memory_bytes = std::nullopt;
  /// Of the server's own memory; nothing: its worker has no control group.
  std::optional<group_usage> host_memory = std::nullopt;
  /// Its client cannot be reached, and it has so many seconds to come back.
  std::optional<double> ends_in = std::nullopt;
};

/// Is informed of sessions and of children that are not workers. Owned by the daemon, as the workers are.
class session_watcher {
 public:
  virtual ~session_watcher() = default;
  /// `activity`: its activity page (activity.hh), or -1.
  virtual void session_began(const session_info& session, int activity) = 0;
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

/// What became of the wish that another worker goes on with a session.
struct replacement {
  enum class state : std::uint8_t { under_way, done, failed };
  state step = state::under_way;
  event_loop::clock::time_point began{};
  event_loop::clock::duration took{};
  std::string why;  ///< it keeps its worker
};

struct worker_totals {
  std::uint64_t sessions = 0, failed = 0, crashed = 0;
  double seconds = 0;  ///< of all ended sessions
};

class workers {
 public:
  /// `changed` is called when a session ended.
  workers(event_loop& loop, worker_settings settings, std::function<void()> changed);
  ~workers();

  /// At once, or when its turn has come (seats.hh). The session has a share.
  std::optional<wire::refusal> begin_session(accepted_session&& session);

  /// For a session of the same identity (encrypted if the session is) whose worker asks for it by the token
  /// that the guest gets.
  std::optional<wire::refusal> add_data_connection(accepted_session&& guest);

  /// The guest has a later connection for a stream of a session, or asks for its end; proven by its secret.
  std::optional<wire::refusal> resume(accepted_session&& guest);

  /// Looks at every running and waiting session. What `look` returns is its share from now on. After an error
  /// the session is ended at once, and what its client sends from then on is not executed.
  void look_again(const std::function<result<share_ptr>(const proven_identity&)>& look);
  /// Ends the sessions of a person that no longer exists, in the same way.
  void end_identity(const std::string& identity, const std::string& why);

  /// What there is, and for how many identities, may change while sessions run.
  void set_places(const limit_settings& limits, bool several);
  /// Why no further session of this identity would be taken now; empty: it would.
  std::string refusal_of(const share& s) const { return seats_.refusal_of(s); }
  const seats& places() const { return seats_; }
  /// What the sessions of an identity hold of each lent device; empty: it has no limit, and is not counted.
  std::vector<std::uint64_t> memory_of(const std::string& account) const;

  /// No new sessions from now on, and no warm workers.
  void drain();
  /// Ends everything that is left, by SIGKILL if SIGTERM is not enough, and waits for it.
  void stop();

  void set_watcher(session_watcher* watcher) { watcher_ = watcher; }
  /// Reports the sessions that are there already.
  void tell_all(session_watcher& watcher) const;

  /// After SIGCHLD: takes the processes that have ended.
  void reap();

  /// Has another worker go on with a session that runs, which is held up for this long at most by work under
  /// way. An error: none can. What came of it says replacement_of().
  status replace(std::uint64_t session, std::chrono::milliseconds patience);
  /// Null: there was no such wish, or the session has ended.
  const replacement* replacement_of(std::uint64_t session) const;

  std::size_t sessions() const { return seats_.running(); }
  std::size_t waiting() const { return waiting_.length(); }
  /// The limit of running and waiting sessions together.
  std::size_t most_sessions() const { return seats_.most().sessions; }
  /// The session that serves this process of this host, among those of one identity. Over local sockets the
  /// kernel must report the same number, so that no client can take another's name.
  std::optional<session_info> find_session(const std::string& identity, const std::string& host,
                                           std::int32_t process) const;
  /// Null: there is no such session, or its worker cannot be held up.
  session_hold* hold_of(std::uint64_t session) const;

  std::vector<session_info> list_sessions() const;
  const waiting_line& waiting_sessions() const { return waiting_; }
  std::vector<warm_info> list_warm() const;
  const pool::counts& pool_counts() const { return pool_.counted(); }
  const worker_totals& totals() const { return totals_; }

 private:
  using worker_id = std::uint64_t;
  struct worker;

  std::optional<wire::refusal> give_worker(accepted_session& session);
  /// In the audit file: a session that begins; one that ends; one that is refused after it has waited.
  void audit_begin(const worker& w) const;
  void audit_end(const worker& w, double seconds, const std::string& why) const;
  void audit_refusal(const accepted_session& session, const std::string& why) const;
  void call_next();
  /// What a worker does before it has a session: nothing, make a context, or open OpenCL for one that waits.
  enum class readiness : std::uint8_t { cold, warm, opencl };
  result<worker*> start_worker(const variables& driver, readiness how,
                               const std::optional<cache_owner>& owner);
  result<child> start_helper(std::vector<std::string> what);
  status group_up(worker& w);
  status limit_group(const worker& w, const share& has) const;
  // What drivers and compilers keep on the disk (worker_caches.cc):
  std::optional<cache_owner> owner_of_cache(const accepted_session& session, bool cuda) const;
  static std::string key_of(const variables& driver, const std::optional<cache_owner>& owner);
  variables within_limits(const worker& w, variables driver) const;
  std::vector<std::string> environment_of(const worker& w, const variables& driver) const;
  worker* find_warm(const std::string& key, const std::string& identity);
  status assign(worker& w, accepted_session& session);
  status give(worker& w, const accepted_session& session);
  status give_account(worker& w, const share& has);
  void take_account_back(worker& w);
  std::size_t to_warm_up(const std::string& key) const;
  void warm_up(const std::string& key, const variables& driver, const std::optional<cache_owner>& owner);
  void warm_up_soon(const worker& like);
  /// The free memory that sessions see does not change meanwhile (activity_page::unsettled).
  void tell_unsettled();
  void schedule_drops();
  void end_idle(worker_id id);
  status on_message(worker& w, control_message& m);
  void begin_to_serve(worker& w, unique_fd activity);
  void on_breach(worker& w, const std::string& why);
  void on_client_gone(worker_id id);
  void end_soon(worker_id id, event_loop::clock::duration patience);
  // So that another worker goes on with a session (replacing.cc):
  status open_exit(worker& w);
  status on_stay(worker& w, control_message& m);
  void not_replaced(worker& w, const std::string& why);
  result<worker*> find_replaceable(std::uint64_t session);
  status lead_together(worker& w, worker& other, std::chrono::milliseconds patience);
  void forget_successor(const worker& w, int wait_status);
  bool pass_session(worker& w);
  void take_session_over(worker& w, worker& other);
  void kill_successor(const worker& w);
  void replaced(const worker& w);
  // For sessions that can be resumed (worker_links.cc):
  status watch_client(worker& w);
  status open_door(worker& w, const wire::hello& hello);
  status on_link(worker& w, bool interrupted);
  std::optional<double> time_left(const worker& w) const;
  worker* longest_away(const std::function<bool(const worker&)>& fit) const;
  void give_way(worker& w, const char* to);
  seats places_soon() const;
  bool give_place(seats& soon, const share& wanting, bool (*fits)(const seats&, const share&));
  bool make_place_for(const share& wanting);
  void make_way();
  status make_room(worker& asking, const room_message& needed);
  void answer_for_room(const worker& gone);
  worker* find_proven(const accepted_session& guest, const wire::proven_question& asked);
  std::optional<wire::refusal> pass_on(worker& w, accepted_session& guest, const wire::resume_question& m);
  void kill_if_there(worker_id id, int signal);
  void ended(worker& w, int wait_status);
  bool begin_again(worker& w, int wait_status);
  void ended_session(worker& w, int wait_status);
  void give_place_back(const worker& w);

  event_loop& loop_;
  worker_settings settings_;
  std::function<void()> changed_;
  pool pool_;
  seats seats_;
  short_sessions short_sessions_;
  std::map<std::string, memory_account> memory_;  ///< by account, of those with a limit and sessions
  waiting_line waiting_;
  std::map<worker_id, std::unique_ptr<worker>> workers_;
  std::map<pid_t, worker_id> by_process_;
  worker_id next_worker_ = 1;
  std::size_t warm_ups_due_ = 0;
  std::uint64_t unsettled_since_ = 0;  ///< as activity_page has it
  std::uint64_t next_session_ = 1;
  worker_totals totals_;
  std::map<std::uint64_t, replacement> replacements_;  ///< by session, of those that run
  broker broker_;
  session_folders folders_;
  compiler_caches compiler_caches_;
  control_groups groups_;
  event_loop::id drop_timer_ = 0;
  bool draining_ = false;
  bool several_ = false;  ///< are there identities beside each other?
  session_watcher* watcher_ = nullptr;
};

}  // namespace outboard::backend
