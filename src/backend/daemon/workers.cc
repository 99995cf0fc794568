#include "backend/daemon/workers.hh"

#include <errno.h>
#include <signal.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/wait.h>

#include <fmt/format.h>

#include <algorithm>
#include <thread>

#include "backend/confinement/confinement.hh"
#include "backend/daemon/admin.hh"
#include "backend/daemon/device_shape.hh"
#include "backend/daemon/worker_entry.hh"
#include "base/counted.hh"
#include "base/log.hh"
#include "wire/data_connection.hh"
#include "wire/opencl_session.hh"

namespace outboard::backend {
namespace {

using namespace std::chrono_literals;

/// A worker whose client is gone ends by itself; the two signals ensure that it has ended within a second.
constexpr auto time_to_end_itself = 400ms;
constexpr auto time_to_end_after_sigterm = 300ms;
/// The worker of a session that can be resumed reports within this time that only the link is broken, even on
/// a busy machine; else its client has left, and it hangs.
constexpr auto time_to_report_interruption = 3s;
/// The next warm worker is started this long after a session began to be served: late enough not to slow the
/// session's first calls, but soon, because the next session may follow.
constexpr auto warm_up_delay = 20ms;

std::string key_of(const variables& driver) {
  std::string key;
  for (const auto& [name, value] : driver)
    fmt::format_to(std::back_inserter(key), "{}={}{}", name, value, '\0');
  return key;
}

/// For the log: user, host, program and process, as the client reports them.
std::string describe(const session_info& s) {
  return fmt::format("{}@{} {}[{}]", s.user, s.host, s.program, s.client_process);
}

}  // namespace

workers::workers(event_loop& loop, worker_settings settings, std::function<void()> changed)
    : loop_(loop),
      settings_(std::move(settings)),
      changed_(std::move(changed)),
      pool_({.per_key = settings_.may_occupy_device ? settings_.pool.per_key : 0,
             .burst = settings_.pool.burst,
             .most = settings_.pool.most,
             .idle = std::chrono::minutes(settings_.pool.idle_minutes)}),
      queue_log_(loop),
      queue_(loop, queue_log_),
      folders_([this](const std::string& above) {
        return start_helper({"--remove-folders", above});
      }),
      compiler_caches_(loop, settings_.compiler_cache, [this] {
        const compiler_cache_settings& cache = settings_.compiler_cache;
        return start_helper({"--tidy", cache.directory, "--tidy-size", fmt::to_string(cache.size),
                             "--tidy-per-identity", fmt::to_string(cache.per_identity)});
      }) {}

workers::~workers() { stop(); }

result<child> workers::start_helper(std::vector<std::string> what) {
  std::vector<std::string> arguments = settings_.command.arguments;
  arguments.insert(arguments.end(), {"--parent", fmt::to_string(::getpid()), "--device", settings_.device});
  arguments.insert(arguments.end(), what.begin(), what.end());
  return start_child(settings_.command.program, arguments, worker_environment({}, settings_.own_environment));
}

std::optional<wire::refusal> workers::begin_session(accepted_session&& session) {
  if (draining_) return wire::refusal{wire::refusal_reason::busy, "the server is shutting down"};
  // A session whose client is away is the first to give way.
  if (sessions_ + queue_.length() >= settings_.limits.sessions && !make_way(nullptr)) {
    return wire::refusal{wire::refusal_reason::busy,
                         describe_full(sessions_, queue_.length(), settings_.limits.sessions)};
  }
  if (auto refusal = no_room_for(session); refusal && !make_way(&session.identity)) return refusal;
  // Those in the queue may have no place now, or they would have it.
  if (taken().free_for(*session.terms)) return give_worker(session);
  if (const std::uint32_t most = session.terms->waiting;
      most != 0 && queue_.waiting_of(session.identity) >= most) {
    return wire::refusal{wire::refusal_reason::busy,
                         fmt::format("{} of {} wait for a place, which is what identity.waiting allows",
                                     counted(most, "session"), session.identity)};
  }
  (void)make_way(nullptr);
  if (const status waits = queue_.join(std::move(session)); !waits.ok())
    return wire::refusal{wire::refusal_reason::busy, waits.error().message};
  return std::nullopt;
}

std::optional<wire::refusal> workers::no_room_for(const accepted_session& session) const {
  const std::size_t most = most_of(*session.terms);
  if (sessions_of(session.identity) < most) return std::nullopt;
  return wire::refusal{
      wire::refusal_reason::busy,
      fmt::format("{} has {}, which is what {} allows {}", session.identity, counted(most, "session"),
                  session.terms->sessions != 0 ? "identity.sessions" : "limits.per_identity",
                  session.terms->sessions != 0 ? "it" : "one")};
}

taken_places workers::taken() const {
  taken_places places{.most = settings_.limits.running, .all = 0, .of = {}};
  for (const auto& [id, w] : workers_) {
    if (w->session) places.take(w->terms->name);
  }
  return places;
}

void workers::call_next() {
  while (!draining_) {
    auto session = queue_.next(taken());
    if (!session) return;
    if (const auto refusal = give_worker(*session)) {
      queue_log_.info(session->peer, "refused ", session->from, ": ", refusal->message);
      send_refusal(session->to_answer(), *refusal);
    }
  }
}

/// The client's variables within the devices that its identity sees.
variables workers::driver_variables(const accepted_session& session) const {
  const auto& wanted = session.hello.environment;
  if (session.terms->devices.empty())
    return driver_environment(wanted, settings_.own_environment, settings_.uuids);
  std::vector<std::string> seen;
  const auto chosen = choose_devices(session.terms->devices, settings_.uuids);
  // A list that names no device was refused when the configuration was read.
  if (chosen.ok()) {
    for (const std::size_t place : *chosen) seen.push_back(settings_.uuids[place]);
  }
  return driver_environment(wanted, lending(settings_.own_environment, seen), settings_.uuids);
}

std::optional<wire::refusal> workers::give_worker(accepted_session& session) {
  const bool cuda = session.hello.wanted != wire::purpose_opencl;
  variables driver = driver_variables(session);
  if (cuda && settings_.confine_cuda != confine_choice::off) driver = without_cache_size(std::move(driver));
  if (names_device_twice(driver, settings_.uuids))
    return wire::refusal{wire::refusal_reason::devices, "CUDA_VISIBLE_DEVICES names a device twice"};
  const std::string key = key_of(driver);
  if (!may_serve(cuda)) {
    return wire::refusal{
        wire::refusal_reason::device,
        fmt::format("{} sessions cannot be confined here ({} is \"require\"): the server's kernel lacks {}",
                    cuda ? "CUDA" : "OpenCL", cuda ? "worker.confine_cuda" : "worker.confine",
                    confinement_lacks())};
  }
  worker* w = cuda ? find_warm(key) : nullptr;
  // A warm worker that has just died must not cost a client its session.
  if (!w || !assign(*w, session).ok()) {
    const bool keeps = !cuda && settings_.confine != confine_choice::off;
    auto started =
        start_worker(driver, cuda ? readiness::cold : readiness::opencl,
                     keeps ? compiler_caches_.lease(session, settings_.own_environment) : std::nullopt);
    if (!started.ok()) return wire::refusal{wire::refusal_reason::busy, started.error().message};
    w = *started;
    if (const status given = assign(*w, session); !given.ok()) {
      kill_if_there(w->id, SIGKILL);
      return wire::refusal{wire::refusal_reason::busy, given.error().message};
    }
  }
  log::info("session ", w->session->id, " began: ", describe(*w->session), " from ", w->session->from,
            ", worker ", w->process.process, w->warm ? " (warm)" : "");
  audit(*w, "began a session", {});
  return std::nullopt;
}

std::optional<wire::refusal> workers::add_data_connection(accepted_session&& guest) {
  const auto session = wire::decode_data_question(guest.hello.admin_question);
  if (!session.ok()) return wire::refusal{wire::refusal_reason::malformed, session.error().message};
  for (const auto& [id, w] : workers_) {
    if (!w->session || w->session->id != *session || !may_join(*w, guest)) continue;
    const offered_message kept = broker_.keep_connection(id, guest.identity, guest.scheme, guest.connection);
    if (!kept.taken) return wire::refusal{wire::refusal_reason::busy, "too many data connections"};
    const std::vector<std::byte> answer = make_welcome(guest.seal, wire::encode_data_answer(kept.token));
    // The answer fits into any socket's buffer; if the client is already gone, the worker will notice.
    (void)::send(guest.to_answer().get(), answer.data(), answer.size(), MSG_DONTWAIT | MSG_NOSIGNAL);
    return std::nullopt;
  }
  return wire::refusal{wire::refusal_reason::question, "there is no such session"};
}

workers::worker* workers::find_warm(const std::string& key) {
  const auto id = pool_.take(key, event_loop::clock::now());
  schedule_drops();
  return id ? workers_.at(*id).get() : nullptr;
}

/// Sessions bring code of their clients: OpenCL's may be native code of this machine, and CUDA's may break
/// out of what executes it.
bool workers::may_serve(bool cuda) {
  const confine_choice how = confine_of(cuda);
  if (how == confine_choice::off) return true;
  const std::string lacks = confinement_lacks();
  if (lacks.empty()) return true;
  if (how == confine_choice::required) return false;
  if (!std::exchange(reported_confinement_[cuda ? 1 : 0], true))
    log::warn(cuda ? "CUDA" : "OpenCL", " sessions are not fully confined: this kernel lacks ", lacks);
  return true;
}

std::vector<std::string> workers::environment_of(const worker& w, const variables& driver,
                                                 const std::optional<cache_lease>& kept) const {
  const variable_source& own = settings_.own_environment;
  if (w.folder.empty()) return worker_environment(driver, own);
  if (w.cuda) return worker_environment(driver, within_folder(own, w.folder));
  if (!kept) return worker_environment(driver, within_folder(own, w.folder, w.folder));
  // NVIDIA's compiler limits its cache to half; the rest is for other compilers.
  return worker_environment(within_cache_size(driver, compiler_caches_.most_of_one() / 2),
                            within_folder(own, w.folder, kept->folder));
}

result<workers::worker*> workers::start_worker(const variables& driver, readiness how,
                                               std::optional<cache_lease> kept) {
  std::vector<std::string> arguments = settings_.command.arguments;
  arguments.insert(arguments.end(), {"--parent", fmt::to_string(::getpid()), "--device", settings_.device});
  if (how == readiness::warm) arguments.push_back("--warm");
  auto w = std::make_unique<worker>();
  w->cuda = how != readiness::opencl;
  if (!w->cuda) arguments.push_back("--opencl");
  if (confine_of(w->cuda) != confine_choice::off) {
    arguments.push_back("--confine");
    // Our interpreter writes no files.
    if (!w->cuda || settings_.device == "vendor") {
      auto folder = folders_.make();
      if (!folder.ok()) return std::move(folder).error();
      w->folder = std::move(*folder);
      arguments.insert(arguments.end(), {"--folder", w->folder});
    }
  }
  if (kept) arguments.insert(arguments.end(), {"--compilers", kept->folder});
  auto process = start_child(settings_.command.program, arguments, environment_of(*w, driver, kept),
                             standard_error::own);
  if (!process.ok()) {
    if (!w->folder.empty()) folders_.remove(w->folder);
    return std::move(process).error();
  }
  if (!w->folder.empty()) folders_.give(w->folder, process->process);
  w->id = next_worker_++;
  w->process = std::move(*process);
  w->kept = std::move(kept);
  w->driver = driver;
  w->key = key_of(driver);
  w->warm = how == readiness::warm;
  // Also if it is to end at once: its folder and its leases are given back when it has.
  by_process_.emplace(w->process.process, w->id);
  worker& started = *workers_.emplace(w->id, std::move(w)).first->second;
  started.control = std::make_unique<control_reader>(
      loop_, started.process.control.get(),
      [this, &started](control_message& m) { return on_message(started, m); },
      [this, &started](const std::string& why) { end_for_breach(started, why); });
  started.output = std::make_unique<worker_output>(loop_, std::move(started.process.errors));
  status reads = started.control->start();
  if (reads.ok()) reads = started.output->start();
  if (!reads.ok()) {
    started.problem = reads.error().message;
    kill_if_there(started.id, SIGKILL);
    return reads.error();
  }
  return &started;
}

status workers::give(worker& w, const accepted_session& session) {
  OUTBOARD_TRY(watch_client(w));
  auto memory = accounts_.join(session.identity, limits_of_memory(session.identity, session.terms.get()));
  if (!memory.ok()) return memory.error();
  const assign_message m{next_session_, session.scheme, encode(session.hello), session.images, session.seal};
  OUTBOARD_TRY(send_control(w.process.control.get(), control_kind::assign, encode(m), w.connection.get()));
  status given = send_control(w.process.control.get(), control_kind::memory,
                              encode(memory_message{w.process.process, memory->slot()}), memory->file());
  if (given.ok()) given = open_door(w, session.hello);
  if (!given.ok()) kill_if_there(w.id, SIGKILL);  // it waits for its page or its door
  w.memory.emplace(std::move(*memory));
  return given;
}

status workers::assign(worker& w, accepted_session& session) {
  w.connection = std::move(session.connection);
  if (const status given = give(w, session); !given.ok()) {
    loop_.forget(std::exchange(w.connection_watch, 0));
    session.connection = std::move(w.connection);
    return given;
  }
  w.session = info_of(session);
  w.session->id = next_session_++;
  w.session->worker = w.process.process;
  w.session->warm = w.warm;
  w.session->started = std::chrono::system_clock::now();
  w.session->environment = w.driver;
  w.session_began = event_loop::clock::now();
  w.answers = std::move(session.answers);
  w.hello = std::move(session.hello);
  w.scheme = session.scheme;
  w.identity = session.identity;
  w.who = std::move(session.who);
  w.terms = session.terms;
  w.images = session.images;
  w.seal = session.seal;
  ++sessions_;
  ++totals_.sessions;
  return {};
}

/// Returns how many the pool wants. While sessions' own workers are starting, warm ones start one at a time,
/// because drivers do not start faster in parallel.
std::size_t workers::to_warm_up(const std::string& key) const {
  const std::size_t wanted = pool_.wants(key, event_loop::clock::now());
  const auto any = [&](auto&& which) {
    return std::ranges::any_of(workers_, [&](const auto& entry) { return which(*entry.second); });
  };
  if (!any([](const worker& w) { return w.session && !w.session->serving; })) return wanted;
  return any([](const worker& w) { return !w.session && !w.ready; }) ? 0 : std::min<std::size_t>(wanted, 1);
}

void workers::warm_up(const std::string& key, const variables& driver) {
  if (draining_) return;
  for (std::size_t left = to_warm_up(key); left > 0; --left) {
    const auto started = start_worker(driver, readiness::warm);
    if (!started.ok()) return log::warn("no warm worker: ", started.error().message);
    pool_.add(key, (*started)->id);
  }
  for (const worker_id id : pool_.drop(event_loop::clock::now())) end_idle(id);
  schedule_drops();
}

void workers::warm_up_soon(const worker& like) {
  loop_.after(warm_up_delay, [this, key = like.key, driver = like.driver] { warm_up(key, driver); });
}

void workers::schedule_drops() {
  loop_.forget(std::exchange(drop_timer_, 0));
  const auto next = pool_.next_drop();
  if (!next) return;
  drop_timer_ = loop_.at(*next, [this] {
    for (const worker_id id : pool_.drop(event_loop::clock::now())) end_idle(id);
    schedule_drops();
  });
}

void workers::end_idle(worker_id id) { kill_if_there(id, SIGTERM); }

/// A worker that does not follow the protocol of its control socket has been taken over, or is faulty.
void workers::end_for_breach(worker& w, const std::string& why) {
  log::warn("worker ", w.process.process, " is ended: ", why);
  if (w.problem.empty()) w.problem = fmt::format("the server ended its worker: {}", why);
  kill_if_there(w.id, SIGKILL);
}

status workers::on_message(worker& w, control_message& m) {
  const auto breach = [&] {
    return failure(
        fmt::format("it sent a message of kind {} that is unknown or malformed", static_cast<int>(m.kind)));
  };
  switch (m.kind) {
    case control_kind::ready: {
      const auto ready = decode_ready(m.payload);
      if (!ready.ok()) return breach();
      w.ready = *ready;
      if (!w.session) warm_up_soon(w);  // the warm workers of a burst start one after the other
      return {};
    }
    case control_kind::serving:
      if (!w.session || w.session->serving) return breach();
      w.session->serving = true;
      w.answers.reset();  // the worker answers
      w.activity = std::move(m.descriptor);
      if (w.activity) {
        if (auto hold = session_hold::open(w.activity)) w.hold.emplace(std::move(*hold));
      }
      if (watcher_) watcher_->session_began(*w.session, w.activity ? w.activity.get() : -1, *w.memory);
      if (w.cuda) warm_up_soon(w);
      return {};
    case control_kind::interrupted:
    case control_kind::restored:
      if (!w.session || !w.door) return breach();
      return on_link(w, m.kind == control_kind::interrupted);
    case control_kind::make_room:
      return w.session ? make_room(w) : breach();
    case control_kind::ended: {
      auto end = decode_ended(m.payload);
      if (!end.ok()) return breach();
      w.end = std::move(*end);
      return {};
    }
    case control_kind::failed: {
      auto text = decode_text(m.payload);
      if (!text.ok()) return breach();
      w.problem = std::move(*text);
      return {};
    }
    case control_kind::offer:
    case control_kind::seek:
    case control_kind::withdraw: {
      const auto reply = w.session ? broker_.answer(w.id, w.identity, m) : std::nullopt;
      if (!reply) return breach();
      // An error, too, if it does not read its answers.
      return send_control(w.process.control.get(), reply->kind, reply->payload, reply->descriptor);
    }
    default:
      return breach();
  }
}

void workers::end_soon(worker_id id, event_loop::clock::duration patience) {
  worker& w = *workers_.at(id);
  loop_.forget(std::exchange(w.timer, 0));
  w.timer = loop_.after(patience, [this, id] {
    kill_if_there(id, SIGTERM);
    const auto still = workers_.find(id);
    if (still == workers_.end()) return;
    still->second->timer = loop_.after(time_to_end_after_sigterm, [this, id] { kill_if_there(id, SIGKILL); });
  });
}

void workers::on_client_gone(worker_id id) {
  const auto at = workers_.find(id);
  if (at == workers_.end()) return;
  worker& w = *at->second;
  if (w.interrupted || !w.problem.empty()) return;  // there is a timer already
  if (w.door && w.session->serving) return end_soon(id, time_to_report_interruption);
  w.client_gone = true;
  end_soon(id, time_to_end_itself);
}

void workers::kill_if_there(worker_id id, int signal) {
  const auto at = workers_.find(id);
  // The number cannot belong to another process yet, because we have not reaped it.
  if (at != workers_.end()) ::kill(at->second->process.process, signal);
}

void workers::reap() {
  while (true) {
    siginfo_t who{};
    if (::waitid(P_ALL, 0, &who, WEXITED | WNOHANG | WNOWAIT) != 0 && errno == EINTR) continue;
    const pid_t process = who.si_pid;
    if (process <= 0) return;
    const auto number = by_process_.find(process);
    // The processes that it started (compilers, or anything that a client's program runs) end with it: they
    // are in its group. No other process can get that number before waitpid().
    if (number != by_process_.end()) ::kill(-process, SIGKILL);
    int wait_status = 0;
    ::waitpid(process, &wait_status, 0);
    if (number == by_process_.end()) {
      if (compiler_caches_.tidier_ended(process)) continue;
      if (watcher_) watcher_->other_child_ended(process, wait_status);
      continue;
    }
    ended(*workers_.at(number->second), wait_status);
  }
}

void workers::ended(worker& w, int wait_status) {
  w.control->read_last();
  w.output->read_all();
  const bool was_session = w.session.has_value();
  if (was_session && w.session->serving && watcher_) watcher_->session_over(w.process.process);
  if (was_session) {
    if (!begin_again(w, wait_status)) ended_session(w, wait_status);
  } else {
    pool_.remove(w.id);
    const bool by_us = WIFSIGNALED(wait_status) && WTERMSIG(wait_status) == SIGTERM;
    if (!by_us) {
      log::warn("idle worker ", w.process.process,
                " ended: ", w.problem.empty() ? describe_exit(wait_status) : w.problem);
    }
  }
  for (const event_loop::id id : {w.connection_watch, w.timer}) loop_.forget(id);
  by_process_.erase(w.process.process);
  broker_.forget(w.id);
  answer_for_room(w);
  if (!w.folder.empty()) folders_.remove(w.folder);
  if (w.kept) compiler_caches_.give_back(std::move(*w.kept));
  workers_.erase(w.id);
  if (!was_session) return;
  call_next();
  changed_();
}

/// Gives the connection to a cold worker if the warm one died before it read anything from it. Returns false
/// if that is impossible.
bool workers::begin_again(worker& w, int wait_status) {
  if (!w.warm || w.session->serving || w.client_gone || draining_) return false;
  auto started = start_worker(w.driver, readiness::cold);
  if (!started.ok()) return false;
  loop_.forget(std::exchange(w.connection_watch, 0));
  accepted_session session{std::move(w.connection),
                           w.scheme,
                           w.session->from,
                           w.session->peer,
                           w.identity,
                           w.who,
                           w.terms,
                           w.session->peer_process,
                           std::move(w.hello),
                           w.images,
                           w.seal,
                           std::move(w.answers)};
  if (!assign(**started, session).ok()) {
    kill_if_there((*started)->id, SIGKILL);
    w.connection = std::move(session.connection);
    w.answers = std::move(session.answers);
    return false;
  }
  --sessions_;
  --totals_.sessions;
  log::warn("session ", w.session->id, " goes on as ", (*started)->session->id, ": its warm worker ended (",
            describe_exit(wait_status), ")");
  return true;
}

void workers::ended_session(worker& w, int wait_status) {
  --sessions_;
  const double seconds = std::chrono::duration<double>(event_loop::clock::now() - w.session_began).count();
  totals_.seconds += seconds;
  const bool clean = WIFEXITED(wait_status) && WEXITSTATUS(wait_status) == 0;
  std::string why;
  if (w.end) {
    why = w.end->orderly ? "the client closed it" : w.end->why;
    if (!clean && !w.client_gone)
      why += fmt::format("; the worker then ended with {}", describe_exit(wait_status));
  } else if (!w.problem.empty()) {
    why = w.problem;
  } else if (w.client_gone) {
    why = fmt::format("the client is gone; the worker was ended: {}", describe_exit(wait_status));
  } else {
    why = fmt::format("the worker ended: {}", describe_exit(wait_status));
    ++totals_.crashed;
  }
  if (!w.end || !w.end->orderly) ++totals_.failed;
  // The hello has not been answered yet, and a reason is better than a closed connection.
  if (!w.session->serving && !w.client_gone) {
    send_refusal(w.answers ? w.answers : w.connection, {wire::refusal_reason::device, why});
  }
  ::shutdown(w.connection.get(), SHUT_RDWR);
  audit(w, "ended a session", why);
  log::info("session ", w.session->id, " ended after ", fmt::format("{:.1f} s", seconds), ": ", why, "; ",
            describe(*w.session), ", ", w.cuda ? fmt::format("device {}", settings_.device) : "OpenCL");
}

void workers::drain() {
  draining_ = true;
  queue_.refuse_all("the server is shutting down");
  for (const worker_id id : pool_.drop_all()) end_idle(id);
  schedule_drops();
}

void workers::stop() {
  drain();
  for (const auto& [id, w] : workers_) ::kill(w->process.process, SIGTERM);
  const auto patience = event_loop::clock::now() + 1s;
  while (!workers_.empty()) {
    if (event_loop::clock::now() > patience) {
      for (const auto& [id, w] : workers_) ::kill(w->process.process, SIGKILL);
    }
    reap();
    // A worker that writes a last line must not wait for us.
    for (const auto& [id, w] : workers_) w->output->read_all();
    if (!workers_.empty()) std::this_thread::sleep_for(2ms);
  }
}

}  // namespace outboard::backend
