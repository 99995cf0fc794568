// Chapter memory, between processes: the 64 bytes that programs pass to each other carry a token of the
// back-end; a handle that was changed in any bit is refused. Codes were measured on driver
// 580.159.
#include <cstring>

#include "frontend/cuda/contexts.hh"
#include "frontend/cuda/ends.hh"
#include "frontend/cuda/objects.hh"
#include "frontend/cuda/shared_handles.hh"

namespace outboard::frontend::cuda {
namespace {

shared_book& book(const lane& own) { return own.state().memory.shared; }

/// Takes room in the window first, because the server maps where the client says.
CUresult open_there(lane& own, const marshal::share_token& token, opened_memory& made) {
  process& p = own.state();
  made.token = token;
  made.context = own.context_handle();
  marshal::share_open_reply about;
  CUresult code = call<api::opcode::cuIpcOpenMemHandle_v2>({own, made.context},
                                                           marshal::share_open_body{.token = token}, about);
  if (code != CUDA_SUCCESS) return code;
  if (about.own) return CUDA_ERROR_INVALID_CONTEXT;
  made.slot = about.device;
  made.mapped_size = about.mapped;
  slot_addresses* slot = about.device >= 0 ? p.memory.window.slot(about.device) : nullptr;
  if (!slot || about.mapped == 0 || about.mapped % window_granule) return CUDA_ERROR_INVALID_DEVICE;
  made.mapped_at = slot->take(about.mapped);
  if (!made.mapped_at) return CUDA_ERROR_OUT_OF_MEMORY;
  code = call<api::opcode::cuIpcOpenMemHandle_v2>(
      {own, made.context}, marshal::share_open_body{.token = token, .address = made.mapped_at}, about);
  if (code != CUDA_SUCCESS) return slot->give_back(made.mapped_at, made.mapped_size), code;
  made.base = made.mapped_at + about.offset;
  memory_block block;
  block.base = made.base;
  block.size = about.size;
  block.kind = memory_kind::imported;
  block.context = made.context;
  block.device = about.device;
  p.memory.addresses.insert(block);
  return CUDA_SUCCESS;
}

}  // namespace

CUresult ends::cuIpcGetMemHandle(CUipcMemHandle* pHandle, CUdeviceptr dptr) {
  lane& own = this_lane();
  process& p = own.state();
  const auto block = p.memory.addresses.find(dptr);
  if (!pHandle || !block || block->kind != memory_kind::device) return CUDA_ERROR_INVALID_VALUE;
  book(own).use();
  marshal::share_reply shared;
  const CUresult code = call<api::opcode::cuIpcGetMemHandle>(
      own, marshal::share_block_body{.address = block->base, .size = block->size}, shared);
  if (code == CUDA_SUCCESS) write_handle(*pHandle, shared.token);
  return code;
}

CUresult ends::cuIpcOpenMemHandle_v2(CUdeviceptr* pdptr, CUipcMemHandle handle, unsigned Flags) {
  lane& own = this_lane();
  const auto token = read_handle(handle);
  if (!pdptr || Flags != CU_IPC_MEM_LAZY_ENABLE_PEER_ACCESS || !token) return CUDA_ERROR_INVALID_VALUE;
  book(own).use();
  const std::lock_guard lock(book(own).opening());
  if (opened_memory* known = book(own).find(*token, own.context_handle())) {
    ++known->count;
    return *pdptr = known->base, CUDA_SUCCESS;
  }
  opened_memory made;
  const CUresult code = open_there(own, *token, made);
  if (code != CUDA_SUCCESS) return code;
  book(own).insert(made);
  return *pdptr = made.base, CUDA_SUCCESS;
}

CUresult ends::cuIpcOpenMemHandle(CUdeviceptr* pdptr, CUipcMemHandle handle, unsigned Flags) {
  return ends::cuIpcOpenMemHandle_v2(pdptr, handle, Flags);
}

CUresult ends::cuIpcCloseMemHandle(CUdeviceptr dptr) {
  lane& own = this_lane();
  process& p = own.state();
  const std::lock_guard lock(book(own).opening());
  opened_memory* known = book(own).find(dptr);
  if (!known) return CUDA_ERROR_INVALID_VALUE;
  if (--known->count > 0) return CUDA_SUCCESS;
  const opened_memory gone = *known;
  book(own).erase(dptr);
  p.memory.addresses.remove(dptr);
  const CUresult code = call<api::opcode::cuIpcCloseMemHandle>(
      {own, gone.context}, marshal::unmap_body{.address = gone.mapped_at, .size = gone.mapped_size});
  if (slot_addresses* slot = p.memory.window.slot(gone.slot))
    slot->give_back(gone.mapped_at, gone.mapped_size);
  return code;
}

CUresult ends::cuIpcGetEventHandle(CUipcEventHandle* pHandle, CUevent event) {
  lane& own = this_lane();
  if (!pHandle || !event) return CUDA_ERROR_INVALID_VALUE;
  const auto* info = find_object<event_info>(own, event);
  if (!info || info->imported || !(info->flags & CU_EVENT_INTERPROCESS)) return CUDA_ERROR_INVALID_HANDLE;
  book(own).use();
  marshal::share_reply shared;
  const CUresult code =
      call<api::opcode::cuIpcGetEventHandle>(own, marshal::handle_body{.handle = value_of(event)}, shared);
  if (code == CUDA_SUCCESS) write_handle(*pHandle, shared.token);
  return code;
}

CUresult ends::cuIpcOpenEventHandle(CUevent* phEvent, CUipcEventHandle handle) {
  lane& own = this_lane();
  process& p = own.state();
  if (!phEvent) return CUDA_ERROR_INVALID_VALUE;
  const auto token = read_handle(handle);
  if (!token) return CUDA_ERROR_MAP_FAILED;
  book(own).use();
  auto info = std::make_unique<event_info>();
  info->flags = CU_EVENT_INTERPROCESS | CU_EVENT_DISABLE_TIMING;
  info->imported = true;
  info->context = own.context_handle();
  handle_table& events = p.handles[api::handle_kind::event];
  const std::uint64_t made = events.reserve(std::move(info));
  if (!made) return CUDA_ERROR_OUT_OF_MEMORY;
  if (const CUresult code = call<api::opcode::cuIpcOpenEventHandle>(
          own, marshal::share_import_body{.handle = made, .token = *token});
      code != CUDA_SUCCESS)
    return events.release(made), code;
  return *phEvent = reinterpret_cast<CUevent>(made), CUDA_SUCCESS;
}

}  // namespace outboard::frontend::cuda
