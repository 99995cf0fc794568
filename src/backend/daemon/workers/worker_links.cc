// What `workers` does for sessions whose link to the client may break: doors for later connections, who may
// come in, and who gives way. A part of workers.hh.
#include <errno.h>
#include <signal.h>
#include <sys/epoll.h>
#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <utility>

#include "backend/daemon/bounds/guest_sources.hh"
#include "backend/daemon/session_fields.hh"
#include "backend/daemon/workers/worker_record.hh"
#include "backend/session/resume_messages.hh"
#include "base/errno_text.hh"
#include "base/log.hh"
#include "base/random.hh"
#include "wire/features.hh"

namespace outboard::backend {
namespace {

using namespace std::chrono_literals;

/// The worker ends a session whose client stays away; this is for one that does not get to run.
constexpr auto overdue = 2s;

/// Says the same whatever is wrong: who guesses learns nothing.
wire::refusal nothing_to_resume() {
  return {wire::refusal_reason::question, "there is no such session to resume"};
}

}  // namespace

/// The daemon waits only for the end of the connection; the bytes are for the worker.
status workers::watch_client(worker& w) {
  loop_.forget(std::exchange(w.connection_watch, 0));
  const auto watch = loop_.watch(w.connection.get(), EPOLLRDHUP | EPOLLONESHOT,
                                 [this, id = w.id](std::uint32_t) { on_client_gone(id); });
  if (!watch.ok()) return watch.error();
  w.connection_watch = *watch;
  return {};
}

status workers::open_door(worker& w, const wire::hello& hello) {
  if ((hello.features & wire::feature_resume) == 0) return {};
  std::array<int, 2> ends{};
  if (::socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends.data()) != 0)
    return failure("socketpair: " + errno_text(errno));
  w.door.reset(ends[0]);
  const unique_fd theirs(ends[1]);
  w.secret = random_value<wire::session_secret>();
  w.lingers = std::chrono::seconds(settings_.limits.linger_seconds);
  const wire::resume_terms m{w.secret, settings_.limits.linger_seconds * 1000};
  return send_control(w.process.control.get(), control_kind::door, encode(m), theirs.get());
}

/// The worker says whether it can reach its client.
status workers::on_link(worker& w, bool interrupted) {
  if (!w.ended_because.empty()) return {};  // it is about to end
  loop_.forget(std::exchange(w.timer, 0));
  w.interrupted.reset();
  const log::with_fields fields(session_fields(*w.session));
  if (!interrupted) {
    log::info("session ", w.session->id, " is resumed from ", w.session->from);
    return {};
  }
  w.interrupted = event_loop::clock::now();
  log::info("session ", w.session->id, " is interrupted: its client has ", w.lingers.count(),
            " s to come back");
  end_soon(w.id, w.lingers + overdue);
  make_way();
  return {};
}

std::optional<double> workers::time_left(const worker& w) const {
  if (!w.interrupted) return std::nullopt;
  const auto until = *w.interrupted + w.lingers;
  const std::chrono::duration<double> left = until - event_loop::clock::now();
  return std::max(0.0, left.count());
}

/// The session whose client has been away for longest, of those that `fit`.
workers::worker* workers::longest_away(const std::function<bool(const worker&)>& fit) const {
  worker* longest = nullptr;
  for (const auto& [id, w] : workers_) {
    const bool away = w->session && w->interrupted && w->ended_because.empty();
    if (!away || !fit(*w)) continue;
    if (!longest || *w->interrupted < *longest->interrupted) longest = w.get();
  }
  return longest;
}

void workers::give_way(worker& w, const char* to) {
  w.ended_because = std::string("its client was away, and another session needed its ") + to;
  w.client_gone = true;
  end_soon(w.id, 0s);
}

/// The places once all have left that are about to.
seats workers::places_soon() const {
  seats soon = seats_;
  for (const auto& [id, w] : workers_) {
    if (w->session && !w->ended_because.empty()) soon.ends(*w->has);
  }
  return soon;
}

/// One whose client is away gives way to a session that gets its place by that, and to no other: one that its
/// own identity's limit keeps waiting ends nobody else's session. One of the same identity goes first. False:
/// there is none that would help.
bool workers::give_place(seats& soon, const share& wanting, bool (*fits)(const seats&, const share&)) {
  const auto helps = [&](const worker& away) {
    seats then = soon;
    then.ends(*away.has);
    return fits(then, wanting);
  };
  worker* longest =
      longest_away([&](const worker& away) { return away.has->account == wanting.account && helps(away); });
  if (!longest) longest = longest_away(helps);
  if (!longest) return false;
  give_way(*longest, "place");
  soon.ends(*longest->has);
  return true;
}

/// For a session that may not even wait. False: it is to be refused.
bool workers::make_place_for(const share& wanting) {
  constexpr auto fits = [](const seats& all, const share& s) { return all.refusal_of(s).empty(); };
  seats soon = places_soon();
  return fits(soon, wanting) || give_place(soon, wanting, fits);
}

/// For the sessions that wait.
void workers::make_way() {
  if (waiting_.length() == 0 || !longest_away([](const worker&) { return true; })) return;
  constexpr auto fits = [](const seats& all, const share& s) { return all.may_run(s); };
  seats soon = places_soon();
  for (const waiting_line::one& one : waiting_.all()) {
    const share& has = *one.session.has;
    if (fits(soon, has) || give_place(soon, has, fits)) soon.begins(has);
  }
}

/// A worker has no memory left. It is answered when another one has ended, which had some where it is needed:
/// a full device ends nobody who has memory of another one only.
status workers::make_room(worker& asking, const room_message& needed) {
  worker* const longest = longest_away([&](const worker& away) {
    if (needed.own && !(asking.slot && away.has->account == asking.account)) return false;
    const auto shown = shown_activity::open(away.activity);
    return !shown || std::ranges::any_of(needed.boards,
                                         [&](std::uint64_t board) { return shown->bytes_on(board) != 0; });
  });
  if (longest && longest != &asking) {
    give_way(*longest, "memory");
    longest->makes_room_for.push_back(asking.id);
    return {};
  }
  const std::byte none{0};
  return send_control(asking.process.control.get(), control_kind::room, {&none, 1});
}

void workers::answer_for_room(const worker& gone) {
  for (const worker_id id : gone.makes_room_for) {
    const auto asking = workers_.find(id);
    const std::byte some{1};
    if (asking != workers_.end())
      (void)send_control(asking->second->process.control.get(), control_kind::room, {&some, 1}).ok();
  }
}

/// The session that the guest asks for, if it has proven that it may.
workers::worker* workers::find_proven(const accepted_session& guest, const wire::proven_question& asked) {
  worker* found = nullptr;
  for (const auto& [id, w] : workers_) {
    if (w->session && w->door && w->session->id == asked.question.session &&
        guest.may_join(w->who.person, w->scheme))
      found = w.get();
  }
  // Without a session the same is computed: no time tells whether there is one.
  const wire::session_secret none{};
  const bool proven =
      wire::is_proven(asked, found ? found->secret : none, {guest.images.challenge, guest.hello.challenge});
  return proven ? found : nullptr;
}

std::optional<wire::refusal> workers::pass_on(worker& w, accepted_session& guest,
                                              const wire::resume_question& m) {
  const knock_message knock{
      guest.scheme, m.stream, m.arrived, {guest.images.challenge, guest.hello.challenge}, guest.seal};
  if (!send_control(w.door.get(), control_kind::knock, payload_of(knock), guest.connection.get()).ok())
    return wire::refusal{wire::refusal_reason::busy, "the session cannot take another connection now"};
  if (m.stream != wire::stream_name{}) return std::nullopt;
  // The worker may not have noticed the interruption, and then does not report its end.
  if (!w.interrupted) loop_.forget(std::exchange(w.timer, 0));
  if (without_port(w.session->from) != without_port(guest.from)) {
    audit_fields fields = proven_fields(*w.session);
    fields.emplace_back("to", guest.from);
    settings_.audit.write_some(w.who.person, "session-moved", fields, claimed_fields(*w.session));
  }
  w.session->from = guest.from;
  w.session->peer = guest.peer;
  w.connection = std::move(guest.connection);
  if (const status watched = watch_client(w); !watched.ok())
    log::debug("the end of session ", w.session->id,
               " will be noticed by its worker alone: ", watched.error().message);
  return std::nullopt;
}

std::optional<wire::refusal> workers::resume(accepted_session&& guest) {
  const auto asked = wire::decode_resume_question(guest.hello.admin_question);
  if (!asked.ok()) return wire::refusal{wire::refusal_reason::malformed, asked.error().message};
  worker* const w = find_proven(guest, *asked);
  // One that is about to end is not given back.
  if (!w || !w->ended_because.empty()) return nothing_to_resume();
  if (asked->question.wish == wire::resume_wish::resume) return pass_on(*w, guest, asked->question);
  w->ended_because = "its program has ended";
  w->client_gone = true;
  end_soon(w->id, 0s);
  const auto answer = make_welcome(guest.seal, {});
  (void)::send(guest.to_answer().get(), answer.data(), answer.size(), MSG_DONTWAIT | MSG_NOSIGNAL);
  return std::nullopt;
}

}  // namespace outboard::backend
