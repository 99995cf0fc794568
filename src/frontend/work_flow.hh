// Work of the program on a device as far as this process knows of it: flows in the order of one stream, and
// which questions may be asked about them.
#pragma once

#include <compare>
#include <cstdint>
#include <functional>

#include "api/cuda/headers.hh"

namespace outboard::frontend {

struct lane;

/// A flow of work in the order of one stream.
struct work_flow {
  std::uint64_t context = 0, stream = 0;
  auto operator<=>(const work_flow&) const = default;

  /// Streams that only one thread can name, and none that anybody can.
  static std::uint64_t of_lane(std::uint32_t lane) { return 1ull << 63 | lane; }
  bool can_be_asked() const { return stream >> 63 == 0; }
};

/// What threads of ours must know of the session. Set once.
struct work_questions {
  std::function<CUresult(lane& own, const work_flow&)> query;  ///< CUDA_ERROR_NOT_READY: work left
  std::function<CUresult(lane& own, std::uint64_t context)> wait_for_all;  ///< of a context
  std::function<bool()> may_ask;  ///< no capture is open that a question would spoil
};

}  // namespace outboard::frontend
