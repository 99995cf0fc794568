// The queue of sessions that wait for a worker because all places are taken that they may have (places.hh).
// They wait as long as their clients stay connected. Owned by the workers; the daemon's one
// thread.
#pragma once

#include <chrono>
#include <cstddef>
#include <functional>
#include <list>
#include <optional>
#include <string>
#include <vector>

#include "backend/daemon/event_loop.hh"
#include "backend/daemon/guests.hh"
#include "backend/daemon/queue/places.hh"

namespace outboard::backend {

class session_queue {
 public:
  using clock = std::chrono::system_clock;

  session_queue(event_loop& loop, bounded_log& log) : loop_(loop), log_(log) {}
  ~session_queue() { refuse_all("the server is shutting down"); }

  session_queue(const session_queue&) = delete;
  session_queue& operator=(const session_queue&) = delete;

  /// An error: it cannot wait, and `session` is as it was.
  status join(accepted_session&& session);
  /// Takes out the session that gets the next place; nothing if none may have one.
  std::optional<accepted_session> next(const taken_places& taken);
  /// Sends each client the reason and closes its connection.
  void refuse_all(const std::string& why);
  /// Likewise, those for which `which` has a reason.
  using reason_for = std::function<std::optional<wire::refusal>(accepted_session& session)>;
  void refuse(const reason_for& which);

  std::size_t length() const { return waiting_.size(); }
  std::size_t waiting_of(const std::string& identity) const;

  struct one {
    accepted_session session;
    clock::time_point since;
    event_loop::id watch = 0;  ///< notices that the client leaves
  };
  /// In the order of arrival.
  const std::list<one>& waiting() const { return waiting_; }
  /// In the order in which they would be called if nobody else came.
  std::vector<const one*> in_order(const taken_places& taken) const;

 private:
  std::vector<const identity_terms*> terms() const;

  event_loop& loop_;
  bounded_log& log_;
  std::list<one> waiting_;  // entries keep their addresses: their watches refer to them
};

/// Refuses a connection whose hello has not been answered yet.
void send_refusal(const unique_fd& connection, const wire::refusal& why);

}  // namespace outboard::backend
