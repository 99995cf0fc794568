// Bodies of requests about data connections: further connections of a session, each for one direction of the
// bytes of large copies. Their frames have kind `data`, the piece's number as ticket and, to the client, the
// code of a copy that failed as context. Values.
#pragma once

#include "marshal/cuda/sharing_bodies.hh"

namespace outboard::marshal {

/// Most bytes of one frame of a data connection.
inline constexpr std::uint32_t max_data_piece = 1u << 20;

/// The first `inward` tokens are of connections that carry bytes to the device. `later`, unless 0: the others
/// are for copies that the program does not wait for, which the worker tells of by frames of kind `aside`; it
/// is the first one's name there, the next ones count on.
struct data_open_body {
  std::uint32_t inward = 0;
  std::vector<share_token> tokens;
  std::uint32_t later = 0;
  OUTBOARD_FIELDS(inward, tokens, later)
};

/// By what data_out names the connections to the host, in the order of their tokens.
struct data_open_reply {
  std::vector<std::uint32_t> outward;
  OUTBOARD_FIELDS(outward)
};

/// `number` is that of the frame, which was sent before; `more`: pieces of the same copy follow.
struct data_in_body {
  std::uint64_t to = 0, size = 0, stream = 0, number = 0;
  flavour how = flavour::sync;
  bool more = false;
  OUTBOARD_FIELDS(to, size, stream, number, how, more)
};

/// Payload of a frame of kind `aside`: bytes [offset, offset + size) of the copy with this ticket come over
/// the connection as its next frame, which has this number.
struct aside_body {
  std::uint64_t ticket = 0, offset = 0, size = 0, number = 0;
  std::uint32_t connection = 0;
  OUTBOARD_FIELDS(ticket, offset, size, number, connection)
};

/// `pace`: nanoseconds that a MiB takes over the connection, as the client sees it; 0: it does not know.
struct data_out_body {
  std::uint64_t from = 0, size = 0, stream = 0, number = 0;
  flavour how = flavour::sync;
  std::uint32_t connection = 0, pace = 0;
  OUTBOARD_FIELDS(from, size, stream, number, how, connection, pace)
};

}  // namespace outboard::marshal
