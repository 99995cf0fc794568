// One large copy over data connections, for every API: it is cut into pieces, which several threads move
// while the calling thread tells the server what to do with each. The caller has locked the connections.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <span>

#include "frontend/copying/data_connections.hh"
#include "frontend/session.hh"

namespace outboard::frontend {

/// A piece as it is announced to the server.
struct streamed_piece {
  std::uint64_t offset = 0, size = 0;  ///< in the copy
  std::uint64_t number = 0;            ///< of its frame
  bool first = false, last = false;
  std::uint32_t connection = 0, pace = 0;  ///< to the host: that it comes over, as data_out_body has them
};
/// Posts the request for a piece, on the calling thread. A code other than 0 ends the copy.
using post_piece = std::function<std::int32_t(const streamed_piece& piece)>;

/// Returns when all bytes have left, or with a code of `post`. Nothing: the session is lost.
std::optional<std::int32_t> stream_to_device(session& server, data_connections& over,
                                             std::span<const std::byte> bytes, const post_piece& post);
/// Returns when all bytes are there, or with a code of `post` or of a piece. Nothing: the session is lost.
std::optional<std::int32_t> stream_to_host(session& server, data_connections& over,
                                           std::span<std::byte> bytes, const post_piece& post);

}  // namespace outboard::frontend
