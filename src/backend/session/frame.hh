// A frame read off the connection for a lane. Whoever has it at hand owns it.
#pragma once

#include <cstddef>
#include <vector>

#include "wire/frame.hh"

namespace outboard::backend {

struct frame {
  wire::frame_header header;
  std::vector<std::byte> payload;
};

}  // namespace outboard::backend
