// What a session speaks when it is not CUDA: where its requests go, what its welcome says, and what must be
// on its way before a reply. Lanes, the turn, frames and handles are the session's own whatever it speaks.
// Owned by the worker process, one for its one session; called with the turn, but for what says otherwise.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "backend/cuda/call.hh"
#include "backend/session/data_piece.hh"
#include "base/result.hh"
#include "device/work_recorder.hh"

namespace outboard::backend {

class session_api {
 public:
  virtual ~session_api() = default;

  /// The session begins: its tables are empty. The welcome's content, or why there is no session.
  virtual result<std::vector<std::byte>> begin(session_core& session) = 0;
  /// nullptr: unknown to this back-end.
  virtual handler find_handler(std::uint32_t opcode) const = 0;
  /// What a client without this function is told.
  virtual std::int32_t unknown_function() const = 0;
  /// What the bytes of large copies pass through.
  virtual piece_memory& pieces() = 0;
  /// Of what the device does for the session, if a program is profiled; null: it tells nothing.
  virtual device::work_recorder* recorder() = 0;
  /// A reply is about to leave: what it tells about must be on the client's side first. Any lane's thread,
  /// perhaps without the turn.
  virtual void before_reply() = 0;
  /// The session is over: it is told nothing any more, and its core is about to go. The main thread, without
  /// the turn.
  virtual void end() = 0;
};

}  // namespace outboard::backend
