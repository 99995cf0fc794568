// A worker's way to the daemon's broker, over its control socket: questions that are answered at once. Owned
// by the worker's main(); any thread (own lock), once the session has begun.
#pragma once

#include <atomic>
#include <memory>
#include <mutex>
#include <optional>

#include "backend/daemon/broker.hh"
#include "backend/session/resume_messages.hh"

namespace outboard::backend {

/// What another session has offered.
struct shared_thing {
  bool own = false;  ///< this session's own offer
  share_about about;
  unique_fd descriptor;
};

class broker_link {
 public:
  explicit broker_link(int control) : control_(control) {}

  /// Holds the offer: withdrawn when the last copy goes. nullptr: it was not taken.
  std::shared_ptr<const marshal::share_token> offer(share_class what, const share_about& about,
                                                    int descriptor);
  std::optional<shared_thing> seek(share_class what, const marshal::share_token& token);
  /// The session's own offer, which ends with that.
  std::optional<shared_thing> take_back(share_class what, const marshal::share_token& token);
  /// There is no memory left: a session whose client is away gives way. False: there is none.
  bool make_room(const room_message& needed);
  /// The session is over: the daemon forgets its offers by itself.
  void end() { ended_.store(true); }

 private:
  std::optional<control_message> ask(control_kind kind, std::span<const std::byte> payload, int descriptor);
  void withdraw(share_class what, const marshal::share_token& token);

  const int control_;
  std::mutex mutex_;
  std::atomic<bool> ended_{false};
};

}  // namespace outboard::backend
