// What cuCtxEnablePeerAccess may ask of the worker beyond what programs can ask.
#pragma once

#include <cstdint>

namespace outboard::marshal {

/// In the place of flags, which must be 0: the other device's blocks are opened to copies of the current one,
/// and kernels are promised nothing.
inline constexpr std::uint32_t peer_access_for_copies = 1u << 31;

}  // namespace outboard::marshal
