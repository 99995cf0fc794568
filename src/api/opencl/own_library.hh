// By what the back-end and our ICD library know each other, so that a host that has both offers no device to
// itself for ever. Constants.
#pragma once

namespace outboard::api::opencl {

/// Set in a worker that loads the host's platforms: there our ICD library has none.
inline constexpr const char* worker_variable = "OUTBOARD_OPENCL_WORKER";

/// CL_PLATFORM_ICD_SUFFIX_KHR of our platforms.
inline constexpr const char* platform_suffix = "OUTBOARD";

}  // namespace outboard::api::opencl
