#include "backend/waiting_line.hh"

#include <sys/epoll.h>
#include <sys/socket.h>

#include <utility>

#include "backend/session_fields.hh"
#include "base/log.hh"
#include "wire/frame.hh"

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
        loop_.forget(place->watch);
        line_.erase(place);
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

std::optional<accepted_session> waiting_line::next() {
  if (line_.empty()) return std::nullopt;
  loop_.forget(line_.front().watch);
  accepted_session session = std::move(line_.front().session);
  line_.pop_front();
  return session;
}

void waiting_line::refuse_all_of(const std::string& identity, const wire::refusal& why) {
  for (auto at = line_.begin(); at != line_.end();) {
    if (at->session.identity != identity) {
      ++at;
      continue;
    }
    loop_.forget(at->watch);
    send_refusal(at->session.connection, why);
    at = line_.erase(at);
  }
}

void waiting_line::refuse_all(const std::string& why) {
  while (auto session = next()) send_refusal(session->to_answer(), {wire::refusal_reason::busy, why});
}

}  // namespace outboard::backend
