// The operands of the kernels, with the same bytes on every machine.
#pragma once

#include <cstdint>
#include <vector>

#include "kernel.hh"

namespace conformance {

/// Records of all threads, operand_stride bytes each; a whole number of blocks.
std::vector<std::uint8_t> operands_of(const kernel& k);

/// The 64 bytes of the kernel parameter `pblock`.
std::vector<std::uint8_t> parameter_bytes();

}  // namespace conformance
