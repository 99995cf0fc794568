// What daemon and worker say to each other about a session that can be resumed. Over the control socket: the
// daemon gives the worker a door, the worker reports when its client cannot be reached. Over the door, a
// socket of its own, the daemon passes connections that have proven the session's secret. Values.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "base/result.hh"
#include "wire/resume.hh"
#include "wire/token_proof.hh"

namespace outboard::backend {

/// control_kind::door, with the worker's end of the door.
struct door_message {
  wire::resume_terms terms;
};

/// Over the door, with the connection's descriptor: it carries this stream from now on.
struct knock_message {
  std::string scheme;  ///< transport that continues the descriptor
  wire::stream_name stream{};
  std::uint64_t arrived = 0;  ///< bytes of the stream that the client has got
  wire::handshake_challenges fresh;
  wire::seal seal = {};  ///< with which the welcome is made
};

std::vector<std::byte> encode(const door_message& m);
std::vector<std::byte> encode(const knock_message& m);
result<door_message> decode_door(std::span<const std::byte> payload);
result<knock_message> decode_knock(std::span<const std::byte> payload);

}  // namespace outboard::backend
