// Sessions that want a worker while as many run as may: they wait in the order of arrival, as long as their
// clients do. Owned by the workers; the daemon's one thread.
#pragma once

#include <chrono>
#include <cstdint>
#include <list>
#include <optional>
#include <string>

#include "backend/bounded_log.hh"
#include "backend/event_loop.hh"
#include "backend/guests.hh"

namespace outboard::backend {

class waiting_line {
 public:
  explicit waiting_line(event_loop& loop) : loop_(loop), log_(loop) {}
  ~waiting_line() { refuse_all("the server is shutting down"); }

  waiting_line(const waiting_line&) = delete;
  waiting_line& operator=(const waiting_line&) = delete;

  /// An error where its leaving could not be noticed; it is not in the line then.
  status join(accepted_session&& session);
  /// The one that has waited longest; none: nobody waits.
  std::optional<accepted_session> next();
  /// Tells each why, and lets it go.
  void refuse_all(const std::string& why);
  /// Those of one identity.
  void refuse_all_of(const std::string& identity, const wire::refusal& why);

  std::size_t length() const { return line_.size(); }

  struct one {
    accepted_session session;
    event_loop::id watch;  ///< for its leaving
    std::chrono::system_clock::time_point since;
  };
  /// The one that has waited longest comes first. Until the line is told something else.
  const std::list<one>& all() const { return line_; }

 private:
  event_loop& loop_;
  bounded_log log_;      // whoever may come in can join and leave as often as they like
  std::list<one> line_;  // places keep their addresses: watches name them
};

/// Says on a connection that nobody has answered yet why it ends.
void send_refusal(const unique_fd& connection, const wire::refusal& why);

}  // namespace outboard::backend
