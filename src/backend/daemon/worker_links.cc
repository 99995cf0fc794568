// What `workers` does for sessions whose link to the client may break: doors for later connections, who may
// come in, and who gives way.
#include <errno.h>
#include <signal.h>
#include <sys/epoll.h>
#include <sys/random.h>
#include <sys/socket.h>

#include <fmt/format.h>

#include <array>
#include <utility>

#include "backend/daemon/worker_entry.hh"
#include "backend/resuming/messages.hh"
#include "base/errno_text.hh"
#include "base/log.hh"
#include "transport/tls/handed_over.hh"
#include "wire/features.hh"

namespace outboard::backend {
namespace {

using namespace std::chrono_literals;

/// The worker ends a session whose client stays away; this is for one that does not get to run.
constexpr auto overdue = 2s;

wire::session_secret fresh_secret() {
  wire::session_secret secret;
  // Below 256 bytes getrandom(2) is neither short nor interrupted.
  CHECK(::getrandom(secret.data(), secret.size(), 0) == static_cast<ssize_t>(secret.size()));
  return secret;
}

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
    return failure(fmt::format("socketpair: {}", errno_text(errno)));
  w.door.reset(ends[0]);
  const unique_fd theirs(ends[1]);
  w.secret = fresh_secret();
  const door_message m{{w.secret, settings_.limits.linger_seconds * 1000}};
  return send_control(w.process.control.get(), control_kind::door, encode(m), theirs.get());
}

/// The worker says whether it can reach its client.
status workers::on_link(worker& w, bool interrupted) {
  if (!w.problem.empty()) return {};  // it is about to end
  loop_.forget(std::exchange(w.timer, 0));
  w.interrupted.reset();
  if (!interrupted) {
    queue_log_.info(w.session->peer, "session ", w.session->id, " is resumed from ", w.session->from);
    return {};
  }
  w.interrupted = event_loop::clock::now();
  queue_log_.info(w.session->peer, "session ", w.session->id, " is interrupted: its client has ",
                  settings_.limits.linger_seconds, " s to come back");
  end_soon(w.id, std::chrono::seconds(settings_.limits.linger_seconds) + overdue);
  if (queue_.length() != 0) (void)make_way(nullptr);
  return {};
}

/// The session whose client has been away for longest, of one identity or of all.
workers::worker* workers::longest_away(const std::string* identity) const {
  worker* longest = nullptr;
  for (const auto& [id, w] : workers_) {
    if (!w->session || !w->interrupted || !w->problem.empty() || (identity && w->identity != *identity))
      continue;
    if (!longest || *w->interrupted < *longest->interrupted) longest = w.get();
  }
  return longest;
}

void workers::give_way(worker& w, const char* to) {
  w.problem = fmt::format("its client was away, and another session needed its {}", to);
  end_soon(w.id, 0s);
}

/// False: no client is away.
bool workers::make_way(const std::string* identity) {
  worker* const longest = longest_away(identity);
  if (longest) give_way(*longest, "place");
  return longest != nullptr;
}

/// A worker has no memory left. It is answered when another one has ended.
status workers::make_room(worker& asking) {
  if (worker* const longest = longest_away(nullptr); longest && longest != &asking) {
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

/// A later connection of a session belongs to the same identity, and is encrypted if the first one was: else
/// who stands in between could have the session go on where he can read it.
bool workers::may_join(const worker& w, const accepted_session& guest) {
  return w.identity == guest.identity &&
         (transport::tls::is_encrypted(guest.scheme) || !transport::tls::is_encrypted(w.scheme));
}

/// The session that the guest asks for, if it has proven that it may.
workers::worker* workers::find_proven(const accepted_session& guest, const wire::proven_question& asked) {
  worker* found = nullptr;
  for (const auto& [id, w] : workers_) {
    if (w->session && w->door && w->session->id == asked.question.session && may_join(*w, guest))
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
  if (!send_control(w.door.get(), control_kind::knock, encode(knock), guest.connection.get()).ok())
    return wire::refusal{wire::refusal_reason::busy, "the session cannot take another connection now"};
  if (m.stream != wire::stream_name{}) return std::nullopt;
  // The worker may not have noticed the interruption, and then does not report its end.
  if (!w.interrupted) loop_.forget(std::exchange(w.timer, 0));
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
  if (!w || !w->problem.empty()) return nothing_to_resume();
  if (asked->question.wish == wire::resume_wish::resume) return pass_on(*w, guest, asked->question);
  w->problem = "its program has ended";
  w->client_gone = true;
  end_soon(w->id, 0s);
  const auto answer = make_welcome(guest.seal, {});
  (void)::send(guest.to_answer().get(), answer.data(), answer.size(), MSG_DONTWAIT | MSG_NOSIGNAL);
  return std::nullopt;
}

}  // namespace outboard::backend
