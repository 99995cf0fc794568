// Sessions that want a worker while as many run as may: they wait in the order of arrival, as long as their
// clients do; the owner of the line decides which goes first. Owned by the workers; the daemon's one thread.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <list>
#include <optional>
#include <string>

#include "backend/daemon/bounds/bounded_log.hh"
#include "backend/daemon/event_loop.hh"
#include "backend/daemon/guests.hh"

namespace outboard::backend {

class waiting_line {
 public:
  /// Is informed of each session that leaves the line by itself, and of each that is refused, with the
  /// reason.
  using on_left = std::function<void(const accepted_session& session, const wire::refusal* why)>;

  waiting_line(event_loop& loop, on_left left) : loop_(loop), left_(std::move(left)), log_(loop) {}
  ~waiting_line() { refuse_all("the server is shutting down"); }

  waiting_line(const waiting_line&) = delete;
  waiting_line& operator=(const waiting_line&) = delete;

  /// An error if it could not be noticed that the client leaves; the session is then not in the line.
  status join(accepted_session&& session);
  /// The session with the lowest `rank` among those that `may` begin; among equals the one that has waited
  /// longest. None: no session may begin.
  std::optional<accepted_session> next(const std::function<bool(const accepted_session&)>& may,
                                       const std::function<std::size_t(const accepted_session&)>& rank);
  /// Sends each client the reason, and closes its connection.
  void refuse_all(const std::string& why);
  /// The same for the sessions for which `why` returns a reason; `why` may change what they have.
  void refuse_some(const std::function<std::optional<wire::refusal>(accepted_session&)>& why);

  std::size_t length() const { return line_.size(); }

  struct one {
    accepted_session session;
    event_loop::id watch;  ///< for its leaving
    std::chrono::system_clock::time_point since;
  };
  /// The one that has waited longest comes first. Valid until the line changes.
  const std::list<one>& all() const { return line_; }

 private:
  accepted_session take(std::list<one>::iterator at);

  event_loop& loop_;
  on_left left_;
  bounded_log log_;      // a client that may come in can join and leave as often as it likes
  std::list<one> line_;  // places keep their addresses: watches name them
};

/// Says on a connection that nobody has answered yet why it ends.
void send_refusal(const unique_fd& connection, const wire::refusal& why);

}  // namespace outboard::backend
