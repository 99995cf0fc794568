// Constants by which the back-end and our ICD library recognise each other, so that a host that has both does
// not offer its devices to itself without end.
#pragma once

namespace outboard::api::opencl {

/// Set in a worker that loads the host's platforms; our ICD library then shows no platform.
inline constexpr const char* worker_variable = "OUTBOARD_OPENCL_WORKER";

/// CL_PLATFORM_ICD_SUFFIX_KHR of our platforms.
inline constexpr const char* platform_suffix = "OUTBOARD";

}  // namespace outboard::api::opencl
