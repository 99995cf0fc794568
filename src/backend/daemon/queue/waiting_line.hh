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
  /// Hears of each that leaves the line by itself, and of each that is refused, and why.
  using on_left = std::function<void(const accepted_session& session, const wire::refusal* why)>;

  waiting_line(event_loop& loop, on_left left) : loop_(loop), left_(std::move(left)), log_(loop) {}
  ~waiting_line() { refuse_all("the server is shutting down"); }

  waiting_line(const waiting_line&) = delete;
  waiting_line& operator=(const waiting_line&) = delete;

  /// An error where its leaving could not be noticed; it is not in the line then.
  status join(accepted_session&& session);
  /// Of those that `may` begin the one with the lowest `rank`, of several that which has waited longest.
  /// None: nobody may.
  std::optional<accepted_session> next(const std::function<bool(const accepted_session&)>& may,
                                       const std::function<std::size_t(const accepted_session&)>& rank);
  /// Tells each why, and lets it go.
  void refuse_all(const std::string& why);
  /// Those of which `why` says something; it may change what they have.
  void refuse_some(const std::function<std::optional<wire::refusal>(accepted_session&)>& why);

  std::size_t length() const { return line_.size(); }

  struct one {
    accepted_session session;
    event_loop::id watch;  ///< for its leaving
    std::chrono::system_clock::time_point since;
  };
  /// The one that has waited longest comes first. Until the line is told something else.
  const std::list<one>& all() const { return line_; }

 private:
  accepted_session take(std::list<one>::iterator at);

  event_loop& loop_;
  on_left left_;
  bounded_log log_;      // whoever may come in can join and leave as often as they like
  std::list<one> line_;  // places keep their addresses: watches name them
};

/// Says on a connection that nobody has answered yet why it ends.
void send_refusal(const unique_fd& connection, const wire::refusal& why);

}  // namespace outboard::backend
