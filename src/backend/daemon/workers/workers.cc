#include "backend/daemon/workers/workers.hh"

#include <errno.h>
#include <signal.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/wait.h>

#include <algorithm>
#include <cstdio>
#include <thread>

#include "backend/confinement/confinement.hh"
#include "backend/daemon/control_reader.hh"
#include "backend/daemon/session_fields.hh"
#include "backend/daemon/workers/worker_record.hh"
#include "backend/session/resume_messages.hh"
#include "base/log.hh"
#include "wire/data_connection.hh"
#include "wire/opencl_session.hh"

namespace outboard::backend {
namespace {

using namespace std::chrono_literals;

/// A worker whose client is gone ends by itself; the two signals make sure that it is gone within a second.
constexpr auto time_to_end_itself = 400ms;
constexpr auto time_to_end_after_sigterm = 300ms;
/// The worker of a session that can be resumed reports within this time that only the link is broken, even on
/// a busy machine; else its client has left, and it hangs.
constexpr auto time_to_report_interruption = 6s;
/// The next warm worker is started once a session is served, and its first calls with it: not so that it
/// slows them, but soon, because the next session may.
constexpr auto warm_up_delay = 20ms;

std::string seconds_text(double seconds) {
  char text[32];
  std::snprintf(text, sizeof text, "%.1f s", seconds);
  return text;
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
      seats_({settings_.limits.sessions, settings_.limits.running}),
      waiting_(loop,
               [this](const accepted_session& gone, const wire::refusal* why) {
                 seats_.leaves(*gone.has);
                 if (why) audit_refusal(gone, why->message);
               }),
      broker_(limits_for_this_process()),
      folders_([this](const std::string& above) {
        return start_helper({"--remove-folders", above});
      }),
      compiler_caches_(
          loop, settings_.compiler_cache,
          [this] {
            const compiler_cache_settings& cache = settings_.compiler_cache;
            return start_helper({"--tidy", cache.directory, "--tidy-size", std::to_string(cache.size),
                                 "--tidy-per-identity", std::to_string(cache.per_identity)});
          }),
      groups_(loop, settings_.group) {
  tell_of_confinement(settings_.confine,
                      {.device = settings_.device, .reaches_all_memory = settings_.reaches_all_memory});
  if (settings_.confine == confine_choice::off) return;
  // No session has to wait for that, nor who waits for this start: a child keeps what it inherits.
  loop_.after(0ms, [this] {
    if (const status prepared = folders_.prepare(); !prepared.ok())
      log::warn("no folders for sessions: ", prepared.error().message);
  });
}

workers::~workers() { stop(); }

result<child> workers::start_helper(std::vector<std::string> what) {
  std::vector<std::string> arguments = settings_.command.arguments;
  arguments.insert(arguments.end(), {"--parent", std::to_string(::getpid()), "--device", settings_.device});
  arguments.insert(arguments.end(), what.begin(), what.end());
  if (settings_.confine != confine_choice::off) arguments.emplace_back("--confine-helper");
  return start_child(settings_.command.program, arguments, worker_environment({}, settings_.own_environment));
}

std::optional<wire::refusal> workers::give_worker(accepted_session& session) {
  const auto& devices = session.has->devices;
  const std::vector<std::string>& uuids = devices ? *devices : settings_.uuids;
  const variables driver = driver_environment(
      session.hello.environment,
      devices ? within_devices(settings_.own_environment, uuids) : settings_.own_environment, uuids);
  if (const auto visible = visible_devices_of(driver, uuids); visible && visible->twice)
    return wire::refusal{wire::refusal_reason::devices, "CUDA_VISIBLE_DEVICES names a device twice"};
  const bool cuda = session.hello.wanted != wire::purpose_opencl;
  const auto owner = owner_of_cache(session, cuda);
  if (!can_be_served(settings_.confine, {settings_.device, cuda, settings_.reaches_all_memory})) {
    return wire::refusal{wire::refusal_reason::device,
                         unconfinable(cuda ? "CUDA sessions" : "OpenCL sessions", settings_.confine,
                                      "serves them", confinement_lacks())};
  }
  worker* w = cuda ? find_warm(key_of(driver, owner), session.identity) : nullptr;
  // A warm worker that has just died must not cost a client its session.
  if (!w || !assign(*w, session).ok()) {
    auto started = start_worker(driver, cuda ? readiness::cold : readiness::opencl, owner);
    if (!started.ok()) return wire::refusal{wire::refusal_reason::busy, started.error().message};
    w = *started;
    if (const status given = assign(*w, session); !given.ok()) {
      kill_if_there(w->id, SIGKILL);
      return wire::refusal{wire::refusal_reason::busy, given.error().message};
    }
  }
  const log::with_fields fields(session_fields(*w->session));
  log::info("session ", w->session->id, " began: ", w->session->user, "@", w->session->host, " ",
            w->session->program, "[", w->session->client_process, "] from ", w->session->from, ", worker ",
            w->process.process, w->warm ? " (warm)" : "", w->cuda ? "" : ", OpenCL");
  audit_begin(*w);
  return std::nullopt;
}

std::optional<wire::refusal> workers::add_data_connection(accepted_session&& guest) {
  const auto session = wire::decode_data_question(guest.hello.admin_question);
  if (!session.ok()) return wire::refusal{wire::refusal_reason::malformed, session.error().message};
  for (const auto& [id, w] : workers_) {
    if (!w->session || w->session->id != *session || !guest.may_join(w->who.person, w->scheme)) continue;
    const offered_message kept = broker_.keep_connection(id, guest.identity, guest.scheme, guest.connection);
    if (!kept.taken) return wire::refusal{wire::refusal_reason::busy, "too many data connections"};
    const std::vector<std::byte> answer = make_welcome(guest.seal, wire::encode_data_answer(kept.token));
    // So little fits into any socket's buffer; a client that is gone already is the worker's to notice.
    (void)::send(guest.to_answer().get(), answer.data(), answer.size(), MSG_DONTWAIT | MSG_NOSIGNAL);
    return std::nullopt;
  }
  return wire::refusal{wire::refusal_reason::question, "there is no such session"};
}

workers::worker* workers::find_warm(const std::string& key, const std::string& identity) {
  const auto id = pool_.take(key, identity, event_loop::clock::now());
  schedule_drops();
  return id ? workers_.at(*id).get() : nullptr;
}

result<workers::worker*> workers::start_worker(const variables& driver, readiness how,
                                               const std::optional<cache_owner>& owner) {
  std::vector<std::string> arguments = settings_.command.arguments;
  arguments.insert(arguments.end(), {"--parent", std::to_string(::getpid()), "--device", settings_.device});
  if (how == readiness::warm) arguments.push_back("--warm");
  auto w = std::make_unique<worker>();
  w->id = next_worker_++;
  w->cuda = how != readiness::opencl;
  if (!w->cuda) arguments.push_back("--opencl");
  if (const auto visible = visible_devices_of(driver, settings_.uuids); visible && visible->ordinals.empty())
    arguments.push_back("--no-visible-device");
  if (settings_.confine != confine_choice::off) {
    auto folder = folders_.make();
    if (!folder.ok()) return std::move(folder).error();
    w->folder = std::move(*folder);
    arguments.insert(arguments.end(), {"--confine", w->folder});
  }
  w->owner = owner;
  if (owner) w->kept = compiler_caches_.lease(*owner, settings_.own_environment);
  if (w->kept) arguments.insert(arguments.end(), {"--compilers", w->kept->folder});
  auto process = start_child(settings_.command.program, arguments, environment_of(*w, driver));
  if (!process.ok()) {
    if (!w->folder.empty()) folders_.remove(w->folder);
    return std::move(process).error();
  }
  if (!w->folder.empty()) folders_.give(w->folder, process->process);
  w->process = std::move(*process);
  w->driver = driver;
  w->key = key_of(driver, owner);
  w->warm = how == readiness::warm;
  const worker_id id = w->id;
  worker& made = *workers_.emplace(id, std::move(w)).first->second;
  by_process_.emplace(made.process.process, id);
  made.reader.emplace(
      loop_, made.process.control.get(), [this, &made](control_message& m) { return on_message(made, m); },
      [this, &made](const std::string& why) { on_breach(made, why); });
  status ready = group_up(made);
  if (ready.ok()) ready = made.reader->start();
  if (!ready.ok()) return kill_if_there(id, SIGKILL), ready.error();
  return &made;
}

/// Right behind its start, before it has loaded a driver: what it takes from now on counts there.
status workers::group_up(worker& w) {
  auto group = groups_.make(w.id);
  if (!group.ok()) return std::move(group).error();
  w.group = std::move(*group);
  return w.group.empty() ? status() : control_groups::enter(w.group, w.process.process);
}

status workers::limit_group(const worker& w, const share& has) const {
  return w.group.empty() ? status() : groups_.limit(w.group, {has.host_memory, has.cpu_weight});
}

status workers::give(worker& w, const accepted_session& session) {
  OUTBOARD_TRY(give_account(w, *session.has));
  OUTBOARD_TRY(limit_group(w, *session.has));
  const assign_message m{next_session_, session.scheme, encode(session.hello), session.images, session.seal};
  OUTBOARD_TRY(watch_client(w));
  OUTBOARD_TRY(send_control(w.process.control.get(), control_kind::assign, encode(m), w.connection.get()));
  status opened = open_door(w, session.hello);
  if (opened.ok()) opened = open_exit(w);
  if (!opened.ok()) kill_if_there(w.id, SIGKILL);  // it waits for its door
  return opened;
}

status workers::assign(worker& w, accepted_session& session) {
  w.connection = std::move(session.connection);
  if (const status given = give(w, session); !given.ok()) {
    loop_.forget(std::exchange(w.connection_watch, 0));
    session.connection = std::move(w.connection);
    return given;
  }
  const wire::hello& hello = session.hello;
  w.session = session_info{.id = next_session_++,
                           .from = session.from,
                           .peer = session.peer,
                           .identity = session.identity,
                           .host = hello.host,
                           .user = hello.user,
                           .program = hello.program,
                           .client_product = hello.product,
                           .has = session.has,
                           .client_process = hello.process,
                           .peer_process = session.process,
                           .worker = w.process.process,
                           .warm = w.warm,
                           .serving = false,
                           .cuda = w.cuda,
                           .started = std::chrono::system_clock::now(),
                           .environment = w.driver};
  w.session_began = event_loop::clock::now();
  w.answers = std::move(session.answers);
  w.hello = std::move(session.hello);
  w.scheme = session.scheme;
  w.who = session.who();
  w.has = session.has;
  w.images = session.images;
  w.seal = session.seal;
  seats_.begins(*w.has);
  ++totals_.sessions;
  return {};
}

/// All that the pool wants; beside sessions whose own workers still start one after the other, because
/// drivers do that no faster side by side.
std::size_t workers::to_warm_up(const std::string& key) const {
  const std::size_t wanted = pool_.wants(key, event_loop::clock::now());
  const auto any = [&](auto&& which) {
    return std::ranges::any_of(workers_, [&](const auto& entry) { return which(*entry.second); });
  };
  if (!any([](const worker& w) { return w.session && !w.session->serving; })) return wanted;
  return any([](const worker& w) { return !w.session && !w.ready; }) ? 0 : std::min<std::size_t>(wanted, 1);
}

void workers::warm_up(const std::string& key, const variables& driver,
                      const std::optional<cache_owner>& owner) {
  if (draining_) return;
  for (std::size_t left = to_warm_up(key); left > 0; --left) {
    const auto started = start_worker(driver, readiness::warm, owner);
    if (!started.ok()) return log::warn("no warm worker: ", started.error().message);
    pool_.add(key, (*started)->id);
  }
  for (const worker_id id : pool_.drop(event_loop::clock::now())) end_idle(id);
  schedule_drops();
}

void workers::warm_up_soon(const worker& like) {
  ++warm_ups_due_;
  loop_.after(warm_up_delay, [this, key = like.key, driver = like.driver, owner = like.owner] {
    --warm_ups_due_;
    warm_up(key, driver, owner);
    tell_unsettled();
  });
  tell_unsettled();
}

void workers::tell_unsettled() {
  const bool starting = std::ranges::any_of(workers_, [](const auto& entry) {
    return entry.second->warm && !entry.second->session && !entry.second->ready;
  });
  const auto now = std::chrono::duration_cast<std::chrono::milliseconds>(
      std::chrono::steady_clock::now().time_since_epoch());
  if (!starting && warm_ups_due_ == 0) {
    unsettled_since_ = 0;
  } else if (unsettled_since_ == 0) {
    unsettled_since_ = static_cast<std::uint64_t>(now.count());
  }
  for (auto& [id, w] : workers_) {
    if (w->hold) w->hold->set_unsettled_since(unsettled_since_);
  }
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

status workers::on_message(worker& w, control_message& m) {
  const auto nonsense = [&m] {
    return failure("it sent a message of kind " + std::to_string(static_cast<int>(m.kind)) +
                   " that is unknown or malformed");
  };
  if (m.kind == control_kind::offer || m.kind == control_kind::seek || m.kind == control_kind::withdraw) {
    const auto reply = w.session ? broker_.answer(w.id, w.who.person, m) : std::nullopt;
    if (!reply) return nonsense();
    return send_control(w.process.control.get(), reply->kind, reply->payload, reply->descriptor);
  }
  if (m.kind == control_kind::interrupted || m.kind == control_kind::restored)
    return w.session && w.door ? on_link(w, m.kind == control_kind::interrupted) : nonsense();
  if (m.kind == control_kind::make_room) {
    const auto needed = body_of<room_message>(m.payload);
    return w.session && needed ? make_room(w, *needed) : nonsense();
  }
  if (m.kind == control_kind::ended) {
    auto end = decode_ended(m.payload);
    if (!end.ok()) return nonsense();
    w.end = std::move(*end);
    return {};
  }
  if (m.kind == control_kind::failed) {
    auto text = decode_text(m.payload);
    if (!text.ok()) return nonsense();
    w.problem = std::move(*text);
    return {};
  }
  if (m.kind == control_kind::ready) {
    const auto ready = decode_ready(m.payload);
    if (!ready.ok() || w.ready) return nonsense();
    w.ready = *ready;
    if (!w.session) warm_up_soon(w);  // more of a burst, one after the other
  } else if (m.kind == control_kind::serving && w.predecessor && !w.goes_on) {
    const auto before = workers_.find(w.predecessor);
    if (before == workers_.end()) return nonsense();
    w.goes_on = true;
    w.activity = std::move(m.descriptor);
    take_session_over(*before->second, w);
  } else {
    if (m.kind != control_kind::serving || !w.session || w.session->serving) return nonsense();
    begin_to_serve(w, std::move(m.descriptor));
  }
  tell_unsettled();
  return {};
}

void workers::begin_to_serve(worker& w, unique_fd activity) {
  w.session->serving = true;
  w.answers.reset();  // the worker answers
  w.activity = std::move(activity);
  if (w.activity) {
    if (auto hold = session_hold::open(w.activity)) w.hold.emplace(std::move(*hold));
  }
  if (watcher_) watcher_->session_began(*w.session, w.activity ? w.activity.get() : -1);
  if (replacements_.contains(w.session->id)) replaced(w);
  if (w.cuda) warm_up_soon(w);
}

/// A worker that cannot be answered, or says what no worker says, is not one of ours any more.
void workers::on_breach(worker& w, const std::string& why) {
  log::warn("worker ", w.process.process, " is ended: ", why);
  w.problem = "the server ended its worker: " + why;
  kill_successor(w);
  kill_if_there(w.id, SIGKILL);
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
  if (w.interrupted || !w.ended_because.empty()) return;  // there is a timer already
  if (w.door && w.session->serving) return end_soon(id, time_to_report_interruption);
  w.client_gone = true;
  end_soon(id, time_to_end_itself);
}

void workers::kill_if_there(worker_id id, int signal) {
  const auto at = workers_.find(id);
  // Its number cannot be another process's yet: we are the ones who wait for it.
  if (at != workers_.end()) ::kill(at->second->process.process, signal);
}

void workers::reap() {
  while (true) {
    siginfo_t who{};
    if (::waitid(P_ALL, 0, &who, WEXITED | WNOHANG | WNOWAIT) != 0 && errno == EINTR) continue;
    const pid_t process = who.si_pid;
    if (process <= 0) return;
    const auto number = by_process_.find(process);
    // What it has started (compilers, or a stranger's program whatever it likes) ends with it. The group has
    // its number, which is nobody else's until it is waited for.
    if (number != by_process_.end()) ::kill(-process, SIGKILL);
    int wait_status = 0;
    ::waitpid(process, &wait_status, 0);
    if (number == by_process_.end()) {
      if (compiler_caches_.tidier_ended(process) || folders_.remover_ended(process)) continue;
      if (watcher_) watcher_->other_child_ended(process, wait_status);
      continue;
    }
    ended(*workers_.at(number->second), wait_status);
  }
}

void workers::ended(worker& w, int wait_status) {
  w.reader->read_last();
  if (w.exit_reader) w.exit_reader->read_last();
  const bool was_session = w.session.has_value();
  if (was_session && w.session->serving && watcher_) watcher_->session_over(w.process.process);
  if (was_session) {
    if (!pass_session(w) && !begin_again(w, wait_status)) ended_session(w, wait_status);
  } else if (w.predecessor || w.handed_on) {
    forget_successor(w, wait_status);
  } else {
    pool_.remove(w.id);
    const bool told_to = WIFSIGNALED(wait_status) && WTERMSIG(wait_status) == SIGTERM;
    if (!told_to) {
      log::warn("idle worker ", w.process.process,
                " ended: ", w.problem.empty() ? describe_exit(wait_status) : w.problem);
    }
  }
  for (const event_loop::id id : {w.connection_watch, w.timer}) loop_.forget(id);
  by_process_.erase(w.process.process);
  broker_.forget(w.id);
  if (!w.folder.empty()) folders_.remove(w.folder);
  if (!w.group.empty()) groups_.remove(w.group);
  if (w.kept) compiler_caches_.give_back(std::move(*w.kept));
  take_account_back(w);
  answer_for_room(w);  // what it held is free now
  workers_.erase(w.id);
  if (!was_session) return tell_unsettled();
  call_next();
  changed_();
}

/// A warm worker that was dying when it got its session has read nothing of the connection yet: a cold one
/// may have it. False where that is not so, or does not work.
bool workers::begin_again(worker& w, int wait_status) {
  if (!w.warm || w.session->serving || w.client_gone || !w.ended_because.empty() || draining_) return false;
  if (replacements_.contains(w.session->id)) return false;  // the connection is in the middle of a session
  auto started = start_worker(w.driver, readiness::cold, w.owner);
  if (!started.ok()) return false;
  loop_.forget(std::exchange(w.connection_watch, 0));
  accepted_session session{.connection = std::move(w.connection),
                           .scheme = w.scheme,
                           .from = w.session->from,
                           .peer = w.session->peer,
                           .identity = w.who.person,
                           .process = w.session->peer_process,
                           .hello = std::move(w.hello),
                           .images = w.images,
                           .seal = w.seal,
                           .answers = std::move(w.answers),
                           .user = w.who.user,
                           .groups = w.who.groups,
                           .by_munge = w.who.by_munge,
                           .also = w.who.also,
                           .has = w.has};
  if (!assign(**started, session).ok()) {
    kill_if_there((*started)->id, SIGKILL);
    w.connection = std::move(session.connection);
    w.answers = std::move(session.answers);
    return false;
  }
  seats_.ends(*w.has);
  --totals_.sessions;
  audit_end(w, 0, "it goes on as session " + std::to_string((*started)->session->id));
  audit_begin(**started);
  log::warn("session ", w.session->id, " goes on as ", (*started)->session->id, ": its warm worker ended (",
            describe_exit(wait_status), ")");
  return true;
}

void workers::give_place_back(const worker& w) {
  const auto keeps = short_sessions_.keeps_place(w.has->account, w.session_began, event_loop::clock::now());
  if (draining_ || keeps <= event_loop::clock::duration::zero()) return seats_.ends(*w.has);
  loop_.after(keeps, [this, has = w.has] {
    seats_.ends(*has);
    call_next();
    changed_();
  });
}

void workers::ended_session(worker& w, int wait_status) {
  give_place_back(w);
  const double seconds = std::chrono::duration<double>(event_loop::clock::now() - w.session_began).count();
  totals_.seconds += seconds;
  const bool clean = WIFEXITED(wait_status) && WEXITSTATUS(wait_status) == 0;
  std::string why;
  if (std::string limit = w.group.empty() ? "" : control_groups::end_of(w.group); !limit.empty()) {
    why = std::move(limit);
  } else if (!w.ended_because.empty()) {
    why = w.ended_because;
  } else if (w.end) {
    why = w.end->orderly ? "the client closed it" : w.end->why;
    if (!clean && !w.client_gone) why += "; the worker then ended with " + describe_exit(wait_status);
  } else if (!w.problem.empty()) {
    why = w.problem;
  } else if (w.client_gone) {
    why = "the client is gone; the worker was ended: " + describe_exit(wait_status);
  } else {
    why = "the worker ended: " + describe_exit(wait_status);
    ++totals_.crashed;
  }
  if (!w.end || !w.end->orderly) ++totals_.failed;
  // Nobody has answered the hello yet: a word is better than a closed connection.
  if (!w.session->serving && !w.client_gone && !replacements_.contains(w.session->id)) {
    send_refusal(w.answers ? w.answers : w.connection, {wire::refusal_reason::device, why});
  }
  ::shutdown(w.connection.get(), SHUT_RDWR);
  std::vector<log::field> fields = session_fields(*w.session);
  fields.insert(fields.end(), {{"seconds", seconds}, {"reason", why}});
  audit_end(w, seconds, why);
  replacements_.erase(w.session->id);
  const log::with_fields with(std::move(fields));
  log::info("session ", w.session->id, " ended after ", seconds_text(seconds), ": ", why, "; ",
            w.session->user, "@", w.session->host, " ", w.session->program, "[", w.session->client_process,
            "], ", w.cuda ? "device " + settings_.device : "OpenCL");
}

void workers::drain() {
  draining_ = true;
  waiting_.refuse_all("the server is shutting down");
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
    if (!workers_.empty()) std::this_thread::sleep_for(2ms);
  }
}

}  // namespace outboard::backend
