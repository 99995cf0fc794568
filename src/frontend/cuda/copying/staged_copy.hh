// Large copies between the program's pageable memory and a device, where this process and the server share
// page-locked memory. Several threads copy through blocks that the device reads and writes by itself, and the
// device reports each block by a word that it writes. One copy at a time for each context; a copy that finds
// the blocks taken goes the ordinary way. Any thread.
#pragma once

#include <cstdint>
#include <optional>

#include "frontend/cuda/requests.hh"

namespace outboard::frontend::cuda {

/// Copies of at least so many bytes are worth it.
inline constexpr std::uint64_t least_staged = 128u << 10;

/// The beginning of a copy to the host goes the ordinary way: it waits for the work before it without a
/// polling thread, and brings what waits bring (errors, output, kernels' changes).
inline constexpr std::uint64_t copy_head = 64u << 10;

/// One of the two: a device's memory that the books know, and memory of the program's that is nothing to
/// CUDA.
struct staged_copy {
  std::uint64_t device = 0;
  std::byte* host = nullptr;
  std::uint64_t size = 0;
  CUstream stream = nullptr;
  marshal::flavour how = marshal::flavour::sync;
};

/// The beginning of a copy to the host, the ordinary way (copy_head); `copy` is then what is left.
CUresult copy_beginning(lane& own, staged_copy& copy);

/// Empty: nothing was done, the copy must go the ordinary way. To the device it returns when the source may
/// be reused; to the host when the bytes are there. `done`, if asked for: the copy must not wait for a stream
/// that is busy, and so many bytes of it have been taken care of; the rest must go the ordinary way.
std::optional<CUresult> stage_in(lane& own, const staged_copy& copy, std::uint64_t* done = nullptr);
std::optional<CUresult> stage_out(lane& own, const staged_copy& copy);

}  // namespace outboard::frontend::cuda
