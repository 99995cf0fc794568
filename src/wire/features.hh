// What a server may offer in its greeting and a client ask for in its hello, one bit each; bits are never
// reused. The session has the features that both have. Values; no thread rules.
#pragma once

#include <cstdint>

namespace outboard::wire {

/// After its hello the client sends one byte that carries a descriptor. If the descriptor arrives, both ends
/// share one Unix socket, and the worker offers rings in shared memory (transport/shm).
inline constexpr std::uint64_t feature_rings = 1;

/// The session may open further connections for the bytes of large copies (wire/data_connection.hh).
inline constexpr std::uint64_t feature_data_connections = 2;

/// Frames of data connections may be packed (frame_kind::packed), in either direction.
inline constexpr std::uint64_t feature_packed_pieces = 4;

/// Whatever is uploaded before a load or a link belongs to the lane that does both, so several lanes may
/// upload at once.
inline constexpr std::uint64_t feature_lane_uploads = 8;

/// The server keeps module images, and the client need not send those that it has (service image_recall).
inline constexpr std::uint64_t feature_image_recall = 16;

/// Fine-grained memory of OpenCL devices: a block's pages come as a descriptor. A side without this feature
/// hides that devices have such memory.
inline constexpr std::uint64_t feature_fine_grain = 32;

/// In OpenCL sessions: the client's headers come along with a build (service build_files).
inline constexpr std::uint64_t feature_build_files = 64;

/// In OpenCL sessions: transfers pass through memory that both ends share (service open_area).
inline constexpr std::uint64_t feature_transfer_areas = 128;

/// The session's connections are streams that other connections can resume (wire/resume.hh,
/// transport/resumable).
inline constexpr std::uint64_t feature_resume = 256;

}  // namespace outboard::wire
