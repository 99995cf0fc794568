#include "backend/daemon/queue/waiting_line.hh"

#include <sys/epoll.h>
#include <sys/socket.h>

#include <utility>

#include "backend/daemon/session_fields.hh"
#include "base/log.hh"
#include "wire/make_frame.hh"

namespace outboard::backend {

void send_refusal(const unique_fd& connection, const wire::refusal& why) {
  const auto refusal = make_frame(wire::frame_kind::refusal, encode(why));
  // So little fits into any socket's buffer; a client that is gone already needs no reason.
  (void)::send(connection.get(), refusal.data(), refusal.size(), MSG_DONTWAIT | MSG_NOSIGNAL);
}

status waiting_line::join(accepted_session&& session) {
  const auto place = line_.insert(line_.end(), one{std::move(session), 0, std::chrono::system_clock::now()});
  // What it sends stays unread: it is the worker's.
  auto watch =
      loop_.watch(place->session.connection.get(), EPOLLRDHUP | EPOLLONESHOT, [this, place](std::uint32_t) {
        const log::with_fields about(client_fields(place->session));
        log_.info(place->session.peer, place->session.from, " left while it waited");
        left_(take(place), nullptr);
      });
  if (!watch.ok()) {
    line_.erase(place);
    return std::move(watch).error();
  }
  place->watch = *watch;
  const log::with_fields fields(client_fields(place->session));
  log_.info(place->session.peer, place->session.hello.user, "@", place->session.hello.host, " ",
            place->session.hello.program, "[", place->session.hello.process, "] from ", place->session.from,
            " waits; ",
            line_.size() == 1 ? std::string("first in the queue")
                              : std::to_string(line_.size() - 1) + " before it");
  return {};
}

accepted_session waiting_line::take(std::list<one>::iterator at) {
  loop_.forget(at->watch);
  accepted_session session = std::move(at->session);
  line_.erase(at);
  return session;
}

std::optional<accepted_session> waiting_line::next(
    const std::function<bool(const accepted_session&)>& may,
    const std::function<std::size_t(const accepted_session&)>& rank) {
  auto best = line_.end();
  std::size_t lowest = 0;
  for (auto at = line_.begin(); at != line_.end(); ++at) {
    if (!may(at->session)) continue;
    const std::size_t its = rank(at->session);
    if (best != line_.end() && its >= lowest) continue;
    best = at;
    lowest = its;
  }
  if (best == line_.end()) return std::nullopt;
  return take(best);
}

void waiting_line::refuse_some(const std::function<std::optional<wire::refusal>(accepted_session&)>& why) {
  for (auto at = line_.begin(); at != line_.end();) {
    const auto here = at++;
    if (const auto refusal = why(here->session)) {
      const accepted_session session = take(here);
      left_(session, &*refusal);
      send_refusal(session.to_answer(), *refusal);
    }
  }
}

void waiting_line::refuse_all(const std::string& why) {
  refuse_some([&](accepted_session&) { return wire::refusal{wire::refusal_reason::busy, why}; });
}

}  // namespace outboard::backend
