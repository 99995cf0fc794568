// The dispatch table of our ICD. Static storage; any thread.
#pragma once

#include "api/opencl/headers.hh"

namespace outboard::shim::opencl {

const cl_icd_dispatch* dispatch_table();

}  // namespace outboard::shim::opencl
