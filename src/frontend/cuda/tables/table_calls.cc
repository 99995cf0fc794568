#include "frontend/cuda/tables/table_calls.hh"

#include "frontend/cuda/ends.hh"
#include "frontend/cuda/gate.hh"

namespace outboard::frontend::cuda {

using api::opcode;

CUresult create_context_by_table(CUcontext* out, unsigned flags, CUdevice device) {
  return gated<opcode::cuCtxCreate_v2>(this_lane(), [&] { return ends::cuCtxCreate_v2(out, flags, device); });
}

CUresult load_module_by_table(CUmodule* out, const void* image) {
  return gated<opcode::cuModuleLoadData>(this_lane(), [&] { return ends::cuModuleLoadData(out, image); });
}

}  // namespace outboard::frontend::cuda
