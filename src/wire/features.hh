// What a server may offer in its greeting and a client ask for in its hello, by bit; bits are never used
// again. The session has what both have. Values; no thread rules.
#pragma once

#include <cstdint>

namespace outboard::wire {

/// After its hello the client sends one byte that carries a descriptor. Where it arrives, both ends stand on
/// one Unix socket, and the worker offers rings in shared memory (transport/shm).
inline constexpr std::uint64_t feature_rings = 1;

/// The session may open further connections for the bytes of large copies (wire/data_connection.hh).
inline constexpr std::uint64_t feature_data_connections = 2;

/// Frames of data connections may be packed (frame_kind::packed), each way.
inline constexpr std::uint64_t feature_packed_pieces = 4;

/// What is uploaded before a load or a link belongs to the lane that does both, so several lanes may at once.
inline constexpr std::uint64_t feature_lane_uploads = 8;

/// The server keeps module images: those that it has need not be sent (service image_recall).
inline constexpr std::uint64_t feature_image_recall = 16;

/// Fine-grained memory of OpenCL devices: a block's pages come as a descriptor. Who does not have it hides
/// what devices say of such memory.
inline constexpr std::uint64_t feature_fine_grain = 32;

/// In OpenCL sessions: the client's headers come along with a build (service build_files).
inline constexpr std::uint64_t feature_build_files = 64;

/// In OpenCL sessions: both ends have memory that transfers pass (service open_area).
inline constexpr std::uint64_t feature_transfer_areas = 128;

/// Memory of both sides is looked at while work goes on (services memory_watch, memory_fetch_live). Without
/// it words that one side writes while the other waits come once the work is over.
inline constexpr std::uint64_t feature_words = 256;

/// The client's log gets a line where its work fails and the device can say more than a code
/// (wire/output.hh).
inline constexpr std::uint64_t feature_failure_lines = 512;

/// The worker records what its device does, and tells a program that is profiled (services profile_start,
/// profile_take, profile_stop). 1024 was the same with records that did not say for which request.
inline constexpr std::uint64_t feature_profile = 2048;

/// The session's connections are streams that other connections can resume (wire/resume.hh,
/// transport/resumable).
inline constexpr std::uint64_t feature_resume = 4096;

/// The hello ends with a MUNGE credential, which shows which user its client is (wire/munge_proof.hh).
/// Offered and asked for by every connection over a network, whatever its purpose is.
inline constexpr std::uint64_t feature_munge = 8192;

/// In CUDA sessions: the worker samples its devices' sensors for a program that is profiled (service
/// profile_samples).
inline constexpr std::uint64_t feature_samples = 16384;

}  // namespace outboard::wire
