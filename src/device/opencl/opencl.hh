// The OpenCL platforms of this host as a device: one typed table of the API's functions, filled from the
// host's ICD loader (libOpenCL.so.1), which is opened when a session needs it and never linked. A worker
// process calls it once, on its main thread.
#pragma once

#include "api/opencl/table.hh"
#include "base/result.hh"

namespace outboard::device::opencl {

/// An entry that the loader does not have is null. Our own ICD library, if the host has it installed, shows
/// no platforms in this process from here on.
result<api::opencl::function_table> open();

}  // namespace outboard::device::opencl
