// The node of a graph that a thread of the cpu device runs, for its work's record.
#pragma once

#include <cstdint>

namespace outboard::device::cpu {

/// As the record shows it; 0: none. The plan sets it.
std::uint64_t& running_node();

}  // namespace outboard::device::cpu
