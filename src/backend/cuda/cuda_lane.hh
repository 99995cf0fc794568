// What a CUDA session keeps with each lane. Of the lane's own thread, but for what says otherwise.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "backend/cuda/unseen_output.hh"
#include "backend/session/lane.hh"

namespace outboard::backend {

class cuda_lane final : public lane {
 public:
  using lane::lane;
  std::uint64_t context = 0;        ///< handle of the context current on this thread
  std::uint64_t context_epoch = 0;  ///< cuda_session::contexts_changed() when it was entered
  std::int32_t deferred = 0;        ///< a failed post's code, for the next call that may carry it
  std::uint64_t waited_for = unseen_output::unknown;  ///< by the driver, during the request at hand
  std::vector<std::byte> upload;                      ///< for the load or link that follows on this lane
  bool upload_dropped = false;  ///< there was no room for all of it: the next load or link reports that
  bool keeps_next = false;      ///< what it loads next was asked for and is not kept yet
};

}  // namespace outboard::backend
