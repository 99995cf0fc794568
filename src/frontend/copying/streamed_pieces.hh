// One large copy over data connections, for any API. It is cut into pieces, which several threads move while
// the calling thread sends the server the request for each. The caller has locked the connections.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <span>

#include "frontend/copying/data_connections.hh"
#include "frontend/session.hh"

namespace outboard::frontend {

/// A piece as its request describes it to the server.
struct streamed_piece {
  std::uint64_t offset = 0, size = 0;  ///< in the copy
  std::uint64_t number = 0;            ///< of its frame
  bool first = false, last = false;
  std::uint32_t connection = 0,
                pace = 0;  ///< for copies to the host: the connection that it comes over, as in data_out_body
};
/// Posts the request for a piece, on the calling thread. A code other than 0 ends the copy.
using post_piece = std::function<std::int32_t(const streamed_piece& piece)>;

/// Returns when all bytes have left, or with a code of `post`. Returns nothing if the session is lost.
std::optional<std::int32_t> stream_to_device(session& server, data_connections& over,
                                             std::span<const std::byte> bytes, const post_piece& post);
/// Returns when all bytes have arrived, or with a code of `post` or of a piece. Returns nothing if the
/// session is lost.
std::optional<std::int32_t> stream_to_host(session& server, data_connections& over,
                                           std::span<std::byte> bytes, const post_piece& post);

}  // namespace outboard::frontend
