// What `workers` does so that another worker goes on with a session: it chooses one and leads the two
// together (successor.hh says how the session goes over). A part of workers.hh.
#include <errno.h>
#include <signal.h>
#include <sys/epoll.h>
#include <sys/socket.h>

#include <array>
#include <utility>

#include "api/cuda/headers.hh"
#include "backend/daemon/session_fields.hh"
#include "backend/daemon/workers/worker_record.hh"
#include "backend/session/successor_messages.hh"
#include "base/errno_text.hh"
#include "base/log.hh"

namespace outboard::backend {
namespace {

result<std::array<unique_fd, 2>> make_pair_of_sockets(int kind) {
  std::array<int, 2> ends{};
  if (::socketpair(AF_UNIX, kind | SOCK_CLOEXEC, 0, ends.data()) != 0)
    return failure("socketpair: " + errno_text(errno));
  return std::array{unique_fd(ends[0]), unique_fd(ends[1])};
}

}  // namespace

/// Over it the worker hears that another one is to go on with its session, and answers if it does not.
status workers::open_exit(worker& w) {
  auto ends = make_pair_of_sockets(SOCK_SEQPACKET);
  if (!ends.ok()) return std::move(ends).error();
  w.exit = std::move((*ends)[0]);
  w.exit_reader.emplace(
      loop_, w.exit.get(), [this, &w](control_message& m) { return on_stay(w, m); },
      [this, &w](const std::string& why) { on_breach(w, why); });
  OUTBOARD_TRY(w.exit_reader->start());
  return send_control(w.process.control.get(), control_kind::exit, {}, (*ends)[1].get());
}

status workers::on_stay(worker& w, control_message& m) {
  auto why = decode_text(m.payload);
  if (m.kind != control_kind::stays || !why.ok() || w.successor == 0)
    return failure("it sent a message about its session's leaving that is unknown or malformed");
  not_replaced(w, *why);
  return {};
}

/// The session goes on where it is, if it can. The other worker has heard of that, or ends without.
void workers::not_replaced(worker& w, const std::string& why) {
  const log::with_fields fields(session_fields(*w.session));
  log::info("session ", w.session->id, " keeps its worker: ", why);
  replacement& about = replacements_[w.session->id];
  about.step = replacement::state::failed;
  about.why = why;
  if (const auto other = workers_.find(std::exchange(w.successor, 0)); other != workers_.end())
    end_soon(other->first, std::chrono::seconds(1));
  warm_up_soon(w);  // that one may have been warm
}

/// It has ended before it could go on with a session, whose worker hears that from the socket between them.
void workers::forget_successor(const worker& w, int wait_status) {
  const auto before = workers_.find(w.predecessor);
  if (before == workers_.end() || before->second->successor != w.id) return;
  const std::string why = w.end ? w.end->why : !w.problem.empty() ? w.problem : describe_exit(wait_status);
  log::info("worker ", w.process.process, " could not go on with session ", before->second->session->id, ": ",
            why);
}

const replacement* workers::replacement_of(std::uint64_t session) const {
  const auto found = replacements_.find(session);
  return found == replacements_.end() ? nullptr : &found->second;
}

result<workers::worker*> workers::find_replaceable(std::uint64_t session) {
  for (const auto& [id, w] : workers_) {
    if (!w->session || w->session->id != session) continue;
    if (w->successor) return failure("another worker is about to go on with it already");
    if (!w->session->serving || !w->exit) return failure("it has not begun yet");
    if (!w->cuda) return failure("OpenCL sessions stay with their worker");
    if (w->door) return failure("its client comes over a network that may break: such sessions stay");
    if (w->hold && (w->hold->state != CU_PROCESS_STATE_RUNNING || w->hold->is_held()))
      return failure("it is locked");
    if (!w->ended_because.empty() || w->client_gone || w->end) return failure("it is about to end");
    return w.get();
  }
  return failure("there is no such session");
}

status workers::replace(std::uint64_t session, std::chrono::milliseconds patience) {
  if (draining_) return failure("the server is shutting down");
  auto found = find_replaceable(session);
  if (!found.ok()) return std::move(found).error();
  worker& w = **found;
  worker* other = find_warm(w.key, w.who.person);
  if (!other) {
    auto started = start_worker(w.driver, readiness::cold, w.owner);
    if (!started.ok()) return std::move(started).error();
    other = *started;
  }
  if (const status led = lead_together(w, *other, patience); !led.ok()) {
    kill_if_there(other->id, SIGKILL);
    return led;
  }
  w.successor = other->id;
  other->predecessor = w.id;
  replacement& about = replacements_[session] = {};
  about.began = event_loop::clock::now();
  return {};
}

status workers::lead_together(worker& w, worker& other, std::chrono::milliseconds patience) {
  auto between = make_pair_of_sockets(SOCK_STREAM);
  if (!between.ok()) return std::move(between).error();
  OUTBOARD_TRY(limit_group(other, *w.has));
  OUTBOARD_TRY(give_account(other, *w.has));
  const assign_message m{w.session->id, w.scheme, encode(w.hello), w.images, w.seal};
  OUTBOARD_TRY(
      send_control(other.process.control.get(), control_kind::take_over, encode(m), (*between)[0].get()));
  OUTBOARD_TRY(open_exit(other));
  const leave_message leave{static_cast<std::uint32_t>(patience.count())};
  return send_control(w.exit.get(), control_kind::leave, payload_of(leave), (*between)[1].get());
}

/// The other worker has the client: the first has let go, and is about to end.
void workers::take_session_over(worker& w, worker& other) {
  loop_.forget(std::exchange(w.connection_watch, 0));
  if (watcher_) watcher_->session_over(w.process.process);
  w.successor = other.predecessor = 0;
  w.handed_on = true;
  other.session = std::move(w.session);
  w.session.reset();
  other.session->worker = other.process.process;
  other.session->warm = other.warm;
  other.session->serving = false;
  other.session_began = w.session_began;
  other.hello = std::move(w.hello);
  other.scheme = std::move(w.scheme);
  other.who = std::move(w.who);
  other.has = std::move(w.has);
  other.images = w.images;
  other.seal = w.seal;
  other.connection = std::move(w.connection);
  other.client_gone = w.client_gone;
  if (const status watched = watch_client(other); !watched.ok())
    log::debug("the end of session ", other.session->id,
               " will be noticed by its worker alone: ", watched.error().message);
  if (other.goes_on) begin_to_serve(other, std::move(other.activity));
  end_soon(w.id, std::chrono::seconds(1));
}

/// Nobody goes on with a session that is to end.
void workers::kill_successor(const worker& w) {
  if (w.successor) kill_if_there(w.successor, SIGKILL);
}

/// The worker has ended before the other one has said that it serves. If the first has let go, the other says
/// so next; if it has not, that one ends, too, and says why. False: the session ends here.
bool workers::pass_session(worker& w) {
  const auto at = workers_.find(w.successor);
  if (w.successor == 0 || at == workers_.end()) return false;
  if (w.end || w.client_gone || !w.ended_because.empty()) return kill_successor(w), false;
  take_session_over(w, *at->second);
  return true;
}

void workers::replaced(const worker& w) {
  replacement& about = replacements_[w.session->id];
  if (about.step != replacement::state::under_way) return;
  about.step = replacement::state::done;
  about.took = event_loop::clock::now() - about.began;
  const log::with_fields fields(session_fields(*w.session));
  log::info("session ", w.session->id, " goes on in worker ", w.process.process);
  audit_fields said = proven_fields(*w.session);
  said.emplace_back("worker", std::int64_t{w.process.process});
  settings_.audit.write_some(w.who.person, "session-replaced", said, claimed_fields(*w.session));
}

}  // namespace outboard::backend
