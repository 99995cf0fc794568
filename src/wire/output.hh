// The first byte of an output frame, which says what the rest is. Values; no thread rules.
#pragma once

#include <cstdint>

namespace outboard::wire {

/// Text for the client's stdout or stderr, or a piece of a core dump of the device, which an empty piece
/// ends.
inline constexpr std::uint8_t output_text = 1, output_errors = 2, output_core_dump = 3;

}  // namespace outboard::wire
