// What a session speaks: where its requests go, what its welcome says, and what an API has to do besides with
// the frames of its client. Connection, lanes, the turn and data connections are the session's own whatever
// it speaks. Owned by the worker process, one for its one session, which it outlives; called with the turn,
// but for what says otherwise.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "backend/session/data_connections.hh"
#include "backend/session/data_piece.hh"
#include "backend/session/lane.hh"
#include "base/result.hh"

namespace outboard::backend {

class session_core;

/// Opcodes that the session looks for by itself, so that it need not ask the API about every frame that it
/// reads.
struct watched_opcodes {
  static constexpr std::uint32_t none = ~0u;
  std::uint32_t early_post = none;                    ///< a post for serve_early()
  std::array<std::uint32_t, 2> launches{none, none};  ///< posts for side_stream()
};

/// Bytes on the stack for the arrays of one request, which need no more; grown from the heap beyond.
inline constexpr std::size_t scratch_size = 16 << 10;

class session_api {
 public:
  explicit session_api(const watched_opcodes& watched = {}) : watched_(watched) {}
  virtual ~session_api() = default;
  session_api(const session_api&) = delete;
  session_api& operator=(const session_api&) = delete;

  const watched_opcodes& watched() const { return watched_; }

  /// The session begins. The welcome's content, or why there is no session.
  virtual result<std::vector<std::byte>> begin(session_core& session) = 0;
  virtual std::unique_ptr<lane> make_lane(std::uint32_t number) { return std::make_unique<lane>(number); }
  /// The lane's thread has ended, and the lane is about to go.
  virtual void forget_lane(lane&) {}
  /// Carries out what `asking` sent, on the thread of `own`, and answers it (session_core::reply()). False:
  /// the request is malformed, and nothing was answered.
  virtual bool carry_out(lane& own, lane& asking, frame& request) = 0;
  /// What the bytes of large copies pass through.
  virtual piece_memory& pieces() = 0;
  /// Sends what is complete of the copies that nobody waits for. A thread of a data connection, without the
  /// turn.
  virtual data_connections::look look_after_copies() { return data_connections::look::nothing; }

  /// Does anybody wait for an answer of the client's? Any thread.
  virtual bool waits_for_client() const { return false; }
  /// The answer. False: to a question that was never asked. The thread that reads, perhaps without the turn.
  virtual bool client_answered(std::uint64_t, std::span<const std::byte>) { return false; }
  /// Carries a request out that has no place among those of its lane but for the time at which it was sent.
  /// False: it is not such a request, or must wait for its turn. The thread that reads, perhaps without the
  /// turn.
  virtual bool serve_early(const frame&) { return false; }

  /// Does the request do the same on whichever thread of the worker it is carried out?
  virtual bool any_thread_may(const wire::frame_header&, std::span<const std::byte>) { return false; }
  /// Of a launch that the lane's own thread may make beside the requests of others: the stream in which alone
  /// it has a place, as the client calls it. 0: it needs the turn.
  virtual std::uint64_t side_stream(const frame&) { return 0; }
  /// The lane's own thread is about to be given this launch. False: it is refused, which a handler must tell.
  virtual bool leave_aside(const frame&, std::uint64_t /*stream*/) { return false; }
  /// Makes it, without the turn. False: the request is malformed.
  virtual bool make_side_launch(lane&, const frame&) { return false; }

  /// The session is over: nobody waits for the client any more. Any thread.
  virtual void stop_waiting() {}
  /// The session is over: it is told nothing any more, and it is about to go unless it is `stuck`: then
  /// threads of lanes are left inside the driver. The main thread, without the turn.
  virtual void end(bool stuck) = 0;

 private:
  const watched_opcodes watched_;
};

}  // namespace outboard::backend
