// The first byte of an output frame: what the rest of it is. Values; no thread rules.
#pragma once

#include <cstdint>

namespace outboard::wire {

/// For the client's stdout or stderr, or a piece of a core dump of the device, which an empty piece ends, or
/// a line for the client's log about its own work that failed (feature_failure_lines).
inline constexpr std::uint8_t output_text = 1, output_errors = 2, output_core_dump = 3, output_log = 4;

}  // namespace outboard::wire
