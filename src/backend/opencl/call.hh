// One request being executed, as its handler sees it. Lives on the lane's thread for the time of the request.
// The handler owns the session's turn (turn.hh) until it gives it up for a wait; the object tables may be
// touched only before.
#pragma once

#include <memory>
#include <memory_resource>

#include "backend/cuda/objects.hh"
#include "backend/session/lane.hh"
#include "backend/session/outcome.hh"
#include "marshal/codec.hh"
#include "wire/cursor.hh"
#include "wire/frame.hh"

namespace outboard::backend {
class session_core;
}

namespace outboard::backend::opencl {

class session;

struct call {
  session_core& core;  ///< the session as far as it knows no API
  session& own_session;
  lane& own;
  const wire::frame_header& header;
  wire::reader body;
  wire::writer& reply;  ///< the outputs; sent only with a call, behind the result code
  std::pmr::memory_resource& scratch;

  object_tables& objects() const;
  /// Lets other lanes go on: to be called once, after everything needed was decoded and resolved, before a
  /// call of the platform that may block on device work.
  void give_up_turn();
  /// The object that this request has made, whether or not it still has the turn. False: malformed.
  [[nodiscard]] bool enter(std::uint64_t id, void* native, std::shared_ptr<void> extra);
};

/// Takes the whole body; false: malformed.
template <class Body>
bool take_all(call& c, Body& body) {
  body = marshal::take_body<Body>(c.body);
  return c.body.finished();
}

using handler = outcome (*)(call&);

}  // namespace outboard::backend::opencl
