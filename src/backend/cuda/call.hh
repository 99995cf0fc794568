// One request being executed, as its handler sees it. Lives on the lane's thread for the time of the request.
// The handler owns the session's turn (turn.hh) until it gives it up for a wait; the object tables may be
// touched only before.
#pragma once

#include "api/cuda/driver_table.hh"
#include "api/cuda/functions.hh"
#include "backend/cuda/objects.hh"
#include "backend/session/request_at_hand.hh"
#include "marshal/cuda/sharing_bodies.hh"

namespace outboard::backend {

class cuda_session;
class cuda_lane;

struct call {
  call(cuda_session& s, request_at_hand& r);

  cuda_session& session;
  session_core& core;
  cuda_lane& own;
  const wire::frame_header& header;
  wire::reader& body;
  wire::writer& reply;  ///< the outputs; sent only with a call, behind the result code
  std::pmr::memory_resource& scratch;
  CUresult refused =
      CUDA_SUCCESS;  ///< why the request's context cannot be entered; its handler must answer this
  bool keep_outputs_on_error = false;  ///< logs of a failed load travel too
  bool told_work = false;              ///< works_on() was called

  const api::driver_table& driver() const;
  object_tables& objects() const;

  /// As request_at_hand::give_up_turn().
  void give_up_turn();

  /// The object that this request has made, whether or not it still has the turn. False: malformed.
  [[nodiscard]] bool enter(std::uint64_t id, void* native, record made_by, std::shared_ptr<void> extra);
  /// What this lane has uploaded for this request, taken out of it. With the turn or without.
  std::vector<std::byte> take_upload();

  /// The request leaves the device work in this stream and nowhere else. Before the turn is given up.
  void works_on(CUstream stream, bool per_thread);
  /// The handler is through, or gives its turn up: where nothing was said of its work, it may be anywhere.
  void account_for_work();

  /// The request itself, for code of every API: it leaves the device no work.
  request_at_hand& without_work() { return told_work = true, at_hand_; }

  /// The request as a record of the object it makes or changes.
  record as_record() const;

 private:
  request_at_hand& at_hand_;
};

using handler = outcome (*)(call&);

/// The handler of an opcode (functions and services), or nullptr: unknown to this back-end.
handler find_handler(std::uint32_t opcode);

}  // namespace outboard::backend
