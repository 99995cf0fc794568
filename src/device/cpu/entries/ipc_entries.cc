// Entries of events between processes, and of peers: the device has none.
#include "device/cpu/ipc_event.hh"
#include "device/cpu/machine.hh"

namespace outboard::device::cpu {
namespace {

CUresult get_event_handle(CUipcEventHandle* out, CUevent event) {
  return with_context([&](context&, const context_ptr&) -> CUresult {
    if (out == nullptr || event == nullptr) return CUDA_ERROR_INVALID_VALUE;
    const auto e = here().events.find(reinterpret_cast<std::uint64_t>(event));
    if (e == nullptr || e->shared == nullptr || e->imported) return CUDA_ERROR_INVALID_HANDLE;
    return *out = e->shared->handle(), CUDA_SUCCESS;
  });
}

CUresult open_event_handle(CUevent* out, CUipcEventHandle handle) {
  return with_context([&](context&, const context_ptr& c) -> CUresult {
    if (out == nullptr) return CUDA_ERROR_INVALID_VALUE;
    bool own = false;
    auto shared = ipc_event::open(handle, own);
    if (shared == nullptr) return CUDA_ERROR_MAP_FAILED;
    if (own) return CUDA_ERROR_INVALID_CONTEXT;
    auto e = std::make_shared<event_object>();
    e->owner = c;
    e->flags = CU_EVENT_INTERPROCESS | CU_EVENT_DISABLE_TIMING;
    e->shared = std::move(shared);
    e->imported = true;
    return *out = reinterpret_cast<CUevent>(here().events.insert(std::move(e))), CUDA_SUCCESS;
  });
}

// A context's peer is another device's.
CUresult enable_peer_access(CUcontext peer, unsigned flags) {
  return with_context([&](context&, const context_ptr&) -> CUresult {
    if (flags != 0) return CUDA_ERROR_INVALID_VALUE;
    const auto other = here().contexts.find(reinterpret_cast<std::uint64_t>(peer));
    return other == nullptr ? CUDA_ERROR_INVALID_CONTEXT : CUDA_ERROR_PEER_ACCESS_UNSUPPORTED;
  });
}

CUresult disable_peer_access(CUcontext peer) {
  return with_context([&](context&, const context_ptr&) -> CUresult {
    const auto other = here().contexts.find(reinterpret_cast<std::uint64_t>(peer));
    return other == nullptr ? CUDA_ERROR_INVALID_CONTEXT : CUDA_ERROR_PEER_ACCESS_NOT_ENABLED;
  });
}

CUresult get_p2p_attribute(int* out, CUdevice_P2PAttribute, CUdevice, CUdevice) {
  return after_init([&] { return out == nullptr ? CUDA_ERROR_INVALID_VALUE : CUDA_ERROR_INVALID_DEVICE; });
}

}  // namespace

void fill_ipc_entries(api::driver_table& t) {
  t.cuIpcGetEventHandle = get_event_handle;
  t.cuIpcOpenEventHandle = open_event_handle;
  t.cuCtxEnablePeerAccess = enable_peer_access;
  t.cuCtxDisablePeerAccess = disable_peer_access;
  t.cuDeviceGetP2PAttribute = get_p2p_attribute;
}

}  // namespace outboard::device::cpu
