// Bodies of image_recall. Values.
#pragma once

#include "marshal/cuda/bodies.hh"

namespace outboard::marshal {

/// Names an image, and proves that the client has it (marshal/cuda/image_name.hh). Size 0 names no image;
/// such a request only asks for a reply.
struct recall_body {
  std::array<std::uint8_t, 32> name{}, proof{};
  std::uint64_t size = 0;
  OUTBOARD_FIELDS(name, proof, size)
};
OUTBOARD_MESSAGE(recall_body)

/// `found`: the image has replaced what the lane has uploaded. Otherwise the upload is unchanged.
struct recall_reply {
  bool found = false;
  OUTBOARD_FIELDS(found)
};
OUTBOARD_MESSAGE(recall_reply)

}  // namespace outboard::marshal
