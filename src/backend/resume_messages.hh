// What the daemon passes to a worker whose session can be resumed, over the door: a socket of its own that
// control_kind::door brings, with wire::resume_terms. Values.
#pragma once

#include <cstdint>
#include <string>

#include "backend/control_body.hh"
#include "wire/resume.hh"
#include "wire/token_proof.hh"

namespace outboard::backend {

/// A connection that has proven the session's secret, with its descriptor: it carries this stream from now
/// on.
struct knock_message {
  std::string scheme;  ///< transport that continues the descriptor
  wire::stream_name stream{};
  std::uint64_t arrived = 0;  ///< bytes of the stream that the client has got
  wire::handshake_challenges fresh;
  wire::seal seal = {};  ///< with which the welcome is made
  OUTBOARD_FIELDS(scheme, stream, arrived, fresh.server, fresh.client, seal)
};

}  // namespace outboard::backend
