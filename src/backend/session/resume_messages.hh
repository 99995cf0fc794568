// What daemon and worker say to each other about sessions that can be resumed. Connections come over the
// door: a socket of its own that control_kind::door brings, with wire::resume_terms. Values.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "backend/daemon/control_body.hh"
#include "wire/resume.hh"
#include "wire/token_proof.hh"

namespace outboard::backend {

/// control_kind::knock: a connection that has proven the session's secret, with its descriptor: it carries
/// this stream from now on.
struct knock_message {
  std::string scheme;  ///< transport that continues the descriptor
  wire::stream_name stream{};
  std::uint64_t arrived = 0;  ///< bytes of the stream that the client has got
  wire::handshake_challenges fresh;
  wire::seal seal = {};  ///< with which the welcome is made
  OUTBOARD_FIELDS(scheme, stream, arrived, fresh.server, fresh.client, seal)
};

/// control_kind::make_room: a session whose client is away should end, so that a worker has more memory.
struct room_message {
  bool own = false;                   ///< only what the worker's own identity holds is in its way
  std::vector<std::uint64_t> boards;  ///< of one of these devices (board_number(); 0: those without a number)
  OUTBOARD_FIELDS(own, boards)
};

}  // namespace outboard::backend
