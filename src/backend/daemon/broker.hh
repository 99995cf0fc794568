// The daemon's book of what sessions share with each other. A worker offers a descriptor or a few bytes of
// its driver's and gets a token; a worker of the same identity that presents the token gets them. A token is
// good for this look-up and nothing else, for the daemon and for clients, and a worker never uses a number,
// path or descriptor that a client named. Owned by the daemon; its one thread.
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include "backend/daemon/control.hh"
#include "backend/daemon/queue/fair_shares.hh"
#include "marshal/cuda/sharing_bodies.hh"

namespace outboard::backend {

enum class share_class : std::uint8_t {
  memory = 1,
  event,
  allocation,
  pool,
  pool_pointer,
  connection,
  host_allocation,  ///< a sealed file; `native` is the number of its memory node
};

/// What goes with an offer; the daemon only keeps it.
struct share_about {
  std::uint64_t mapped = 0, offset = 0, size = 0;
  std::array<std::uint8_t, 16> device{};  ///< UUID
  std::vector<std::uint8_t> native;       ///< the driver's own bytes
  OUTBOARD_FIELDS(mapped, offset, size, device, native)
};

struct offer_message {
  share_class what = share_class::memory;
  share_about about;
  OUTBOARD_FIELDS(what, about.mapped, about.offset, about.size, about.device, about.native)
};

struct offered_message {
  bool taken = false;
  marshal::share_token token{};
  OUTBOARD_FIELDS(taken, token)
};

/// control_kind::seek and withdraw.
struct seek_message {
  share_class what = share_class::memory;
  marshal::share_token token{};
  OUTBOARD_FIELDS(what, token)
};

struct sought_message {
  bool found = false, own = false;
  share_about about;
  OUTBOARD_FIELDS(found, own, about.mapped, about.offset, about.size, about.device, about.native)
};

/// The limits of all sessions are shared by identities (fair_shares.hh), each limit separately: an identity
/// that offers as much as it may takes neither the offers of others nor anybody's data connections.
struct broker_limits {
  std::size_t connections = 64;  ///< of one session, not yet taken by its worker
  std::size_t per_session = 8192;
  std::size_t descriptors = 16384;     ///< of all sessions' offers
  std::size_t offers = 131072;         ///< of all sessions, with descriptors and without
  std::size_t all_connections = 4096;  ///< of all sessions, not yet taken by their workers
};

/// The usual limits, where this process may have so many descriptors: a quarter of its own for offers, an
/// eighth for connections.
broker_limits limits_for_this_process();

/// What the daemon answers to a worker.
struct broker_answer {
  control_kind kind = control_kind::withdrawn;
  std::vector<std::byte> payload;
  int descriptor = -1;  ///< stays the broker's
};

class broker {
 public:
  using owner_id = std::uint64_t;

  explicit broker(broker_limits limits = {})
      : limits_(limits),
        shares_{fair_shares(limits.offers), fair_shares(limits.descriptors),
                fair_shares(limits.all_connections)} {}

  /// Nothing: the message is not for the broker, or malformed.
  std::optional<broker_answer> answer(owner_id owner, const std::string& identity, const control_message& m);
  /// A further connection of `owner`'s own client, until the worker takes it; `scheme` is its transport.
  offered_message keep_connection(owner_id owner, const std::string& identity, const std::string& scheme,
                                  const unique_fd& connection);
  /// The session is over: its tokens no longer mean anything.
  void forget(owner_id owner);
  std::size_t size() const { return offers_.size(); }

 private:
  struct offer {
    owner_id owner = 0;
    std::string identity;
    share_class what = share_class::memory;
    share_about about;
    unique_fd descriptor;
  };
  struct token_hash {
    std::size_t operator()(const marshal::share_token& t) const;  // of random bytes: any eight of them
  };

  struct owned {
    std::vector<marshal::share_token> tokens;
    std::size_t connections = 0;  ///< of them
    bool reported = false;        ///< the log has a line of it: it may ask as often as it likes
  };
  /// What all sessions have together, by identity.
  struct shares {
    fair_shares offers, descriptors, connections;
  };

  offered_message take(owner_id owner, const std::string& identity, offer_message&& m, int descriptor);
  bool take_places(const std::string& identity, share_class what, bool with_descriptor);
  void give_places_back(const std::string& identity, share_class what, bool with_descriptor);
  void erase(const marshal::share_token& token);

  broker_limits limits_;
  shares shares_;
  std::unordered_map<marshal::share_token, offer, token_hash> offers_;
  std::unordered_map<owner_id, owned> by_owner_;
};

}  // namespace outboard::backend
