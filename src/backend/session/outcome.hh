// What became of a request, as its handler says it. Values; any thread.
#pragma once

#include <cstdint>

namespace outboard::backend {

/// The API's answer, or a peer that does not follow the protocol.
struct [[nodiscard]] outcome {
  bool well_formed = true;
  std::int32_t code = 0;
  static outcome answer(std::int32_t code) { return {true, code}; }
  static outcome malformed() { return {false, 0}; }
};

}  // namespace outboard::backend
