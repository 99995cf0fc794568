// Bodies of image_recall. Values.
#pragma once

#include "marshal/cuda/bodies.hh"

namespace outboard::marshal {

/// An image by its name, and the proof that the client has it (marshal/cuda/image_name.hh). Size 0: none, the
/// request is there to be answered.
struct recall_body {
  std::array<std::uint8_t, 32> name{}, proof{};
  std::uint64_t size = 0;
  OUTBOARD_FIELDS(name, proof, size)
};

/// `found`: the image has taken the place of what the lane has uploaded. Else that is as it was.
struct recall_reply {
  bool found = false;
  OUTBOARD_FIELDS(found)
};

}  // namespace outboard::marshal
