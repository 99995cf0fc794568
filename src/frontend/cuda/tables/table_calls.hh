// Driver functions that the undocumented tables offer under other names: the same ends behind the same first
// check, without what a program's own call has around it (trace, capture). Any thread.
#pragma once

#include "api/cuda/headers.hh"

namespace outboard::frontend::cuda {

CUresult create_context_by_table(CUcontext* out, unsigned flags, CUdevice device);
CUresult load_module_by_table(CUmodule* out, const void* image);

}  // namespace outboard::frontend::cuda
