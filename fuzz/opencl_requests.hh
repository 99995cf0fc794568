// A request of each kind that an OpenCL session knows, as a correct client would send it. The first ones make
// the objects that the others name.
#pragma once

#include <cstdint>
#include <vector>

#include "api/opencl/functions.hh"

namespace outboard::fuzz {

struct example {
  std::uint32_t opcode = 0;
  std::vector<std::byte> body;
};

struct examples {
  std::vector<example> all;
  std::size_t first = 0;  ///< the number of requests that make what the others name
};
const examples& opencl_requests();

}  // namespace outboard::fuzz
