// Chapter module: the texture and surface references that a module declares. The same name is the same
// handle.
#include "frontend/cuda/ends.hh"
#include "frontend/cuda/gate.hh"
#include "frontend/cuda/objects.hh"
#include "frontend/cuda/requests.hh"

namespace outboard::frontend::cuda {
namespace {

template <api::opcode Op, class H>
CUresult reference(H* out, CUmodule module, const char* name,
                   module_info::handles_by_name module_info::*known) {
  lane& own = this_lane();
  if (const CUresult code = gate<Op>(own); code != CUDA_SUCCESS) return code;
  if (!out || !name) return CUDA_ERROR_INVALID_VALUE;
  auto* info = find_object<module_info>(module);
  if (!info) return CUDA_ERROR_INVALID_HANDLE;
  const std::lock_guard lock(info->mutex);
  module_info::handles_by_name& handles = info->*known;
  if (const auto found = handles.find(name); found != handles.end())
    return *out = reinterpret_cast<H>(found->second), CUDA_SUCCESS;
  handle_table& table = process::instance().objects().handles(api::handle_trait<H>::kind);
  auto made = std::make_unique<object>();
  made->context = info->context;
  const std::uint64_t handle = table.reserve(std::move(made));
  if (!handle) return CUDA_ERROR_OUT_OF_MEMORY;
  request_of<Op> r(own, marshal::derive_body{value_of(module), handle, name});
  if (const CUresult code = r.call(); code != CUDA_SUCCESS) return table.release(handle), code;
  handles[name] = handle;
  return *out = reinterpret_cast<H>(handle), CUDA_SUCCESS;
}

}  // namespace

CUresult ends::cuModuleGetTexRef(CUtexref* pTexRef, CUmodule hmod, const char* name) {
  return reference<api::opcode::cuModuleGetTexRef>(pTexRef, hmod, name, &module_info::textures);
}

CUresult ends::cuModuleGetSurfRef(CUsurfref* pSurfRef, CUmodule hmod, const char* name) {
  return reference<api::opcode::cuModuleGetSurfRef>(pSurfRef, hmod, name, &module_info::surfaces);
}

}  // namespace outboard::frontend::cuda
