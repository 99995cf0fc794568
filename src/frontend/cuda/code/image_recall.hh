// Loads a module image that the server has kept, without sending it. Any thread.
#pragma once

#include <cstddef>
#include <mutex>
#include <span>

#include "frontend/lane.hh"

namespace outboard::frontend::cuda {

struct recalled_image {
  std::size_t uploaded = 0;  ///< bytes from the image's beginning that the server has by now
};

/// Asks for the image where that is faster than to send it; may send its beginning to find out. `turn`: as
/// for upload().
recalled_image recall_image(lane& own, std::span<const std::byte> image,
                            const std::unique_lock<std::mutex>& turn);

}  // namespace outboard::frontend::cuda
