#include "backend/daemon/queue/session_queue.hh"

#include <sys/epoll.h>
#include <sys/socket.h>

#include <algorithm>
#include <iterator>
#include <utility>

#include "base/log.hh"
#include "wire/frame.hh"

namespace outboard::backend {

void send_refusal(const unique_fd& connection, const wire::refusal& why) {
  const auto refusal = make_frame(wire::frame_kind::refusal, encode(why));
  // So little fits into any socket's buffer. A client that has gone needs no reason.
  (void)::send(connection.get(), refusal.data(), refusal.size(), MSG_DONTWAIT | MSG_NOSIGNAL);
}

status session_queue::join(accepted_session&& session) {
  const auto place = waiting_.insert(waiting_.end(), one{std::move(session), clock::now()});
  // The daemon does not read what the client sends: those bytes are for the worker.
  const auto watch =
      loop_.watch(place->session.connection.get(), EPOLLRDHUP | EPOLLONESHOT, [this, place](std::uint32_t) {
        log_.info(place->session.peer, place->session.from, " disconnected while it waited for a place");
        loop_.forget(place->watch);
        waiting_.erase(place);
      });
  if (!watch.ok()) {
    session = std::move(place->session);
    waiting_.erase(place);
    return watch.error();
  }
  place->watch = *watch;
  const wire::hello& hello = place->session.hello;
  log_.info(place->session.peer, hello.user, "@", hello.host, " ", hello.program, "[", hello.process,
            "] from ", place->session.from, " waits for a place; it is number ", waiting_.size(),
            " in the queue");
  return {};
}

std::vector<const identity_terms*> session_queue::terms() const {
  std::vector<const identity_terms*> list;
  for (const one& each : waiting_) list.push_back(each.session.terms.get());
  return list;
}

std::optional<accepted_session> session_queue::next(const taken_places& taken) {
  const auto index = next_for_place(terms(), taken);
  if (!index) return std::nullopt;
  const auto place = std::next(waiting_.begin(), static_cast<std::ptrdiff_t>(*index));
  loop_.forget(place->watch);
  accepted_session session = std::move(place->session);
  waiting_.erase(place);
  return session;
}

std::vector<const session_queue::one*> session_queue::in_order(const taken_places& taken) const {
  std::vector<const one*> arrived, ordered;
  for (const one& each : waiting_) arrived.push_back(&each);
  for (const std::size_t index : order_of_places(terms(), taken)) ordered.push_back(arrived[index]);
  return ordered;
}

std::size_t session_queue::waiting_of(const std::string& identity) const {
  return static_cast<std::size_t>(
      std::ranges::count_if(waiting_, [&](const one& each) { return each.session.identity == identity; }));
}

void session_queue::refuse(const reason_for& which) {
  for (auto at = waiting_.begin(); at != waiting_.end();) {
    const auto place = at++;
    const auto why = which(place->session);
    if (!why) continue;
    loop_.forget(place->watch);
    send_refusal(place->session.to_answer(), *why);
    waiting_.erase(place);
  }
}

void session_queue::refuse_all(const std::string& why) {
  refuse([&](accepted_session&) { return wire::refusal{wire::refusal_reason::busy, why}; });
}

}  // namespace outboard::backend
