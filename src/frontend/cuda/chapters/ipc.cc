// Chapter memory, between processes: the 64 bytes that programs pass to each other carry a token of the
// back-end's and nothing that could be changed to anything but refusal. Codes were measured on driver
// 580.159.
#include <cstring>

#include "frontend/cuda/contexts.hh"
#include "frontend/cuda/ends.hh"
#include "frontend/cuda/objects.hh"
#include "frontend/cuda/shared_handles.hh"

namespace outboard::frontend::cuda {
namespace {

shared_book& book() { return process::instance().memory().shared(); }

CUresult ask(lane& own, std::uint64_t context, const marshal::share_open_body& body,
             marshal::share_open_reply& got) {
  request_of<api::opcode::cuIpcOpenMemHandle_v2> r(own, body);
  r.in_context(context);
  return r.call(got);
}

/// Room in the window first, because the server maps where the client says.
CUresult open_there(lane& own, const marshal::share_token& token, opened_memory& made) {
  process& p = process::instance();
  made.token = token;
  made.context = own.context_handle();
  marshal::share_open_reply about;
  CUresult code = ask(own, made.context, {token, 0}, about);
  if (code != CUDA_SUCCESS) return code;
  if (about.own) return CUDA_ERROR_INVALID_CONTEXT;
  made.slot = about.device;
  made.mapped_size = about.mapped;
  slot_addresses* slot = about.device >= 0 ? p.memory().window_slot(about.device) : nullptr;
  if (!slot || about.mapped == 0 || about.mapped % window_granule) return CUDA_ERROR_INVALID_DEVICE;
  made.mapped_at = slot->take(about.mapped);
  if (!made.mapped_at) return CUDA_ERROR_OUT_OF_MEMORY;
  code = ask(own, made.context, {token, made.mapped_at}, about);
  if (code != CUDA_SUCCESS) return slot->give_back(made.mapped_at, made.mapped_size), code;
  made.base = made.mapped_at + about.offset;
  memory_block block;
  block.base = made.base;
  block.size = about.size;
  block.kind = memory_kind::imported;
  block.context = made.context;
  block.device = about.device;
  p.memory().addresses().insert(block);
  return CUDA_SUCCESS;
}

}  // namespace

CUresult ends::cuIpcGetMemHandle(CUipcMemHandle* pHandle, CUdeviceptr dptr) {
  process& p = process::instance();
  lane& own = this_lane();
  if (const CUresult code = p.gate(own); code != CUDA_SUCCESS) return code;
  const auto block = p.memory().addresses().find(dptr);
  if (!pHandle || !block || block->kind != memory_kind::device) return CUDA_ERROR_INVALID_VALUE;
  book().use();
  request_of<api::opcode::cuIpcGetMemHandle> r(own, marshal::share_block_body{block->base, block->size});
  marshal::share_token token;
  const CUresult code = call_for_token(r, token);
  if (code == CUDA_SUCCESS) write_handle(*pHandle, token);
  return code;
}

CUresult ends::cuIpcOpenMemHandle_v2(CUdeviceptr* pdptr, CUipcMemHandle handle, unsigned Flags) {
  lane& own = this_lane();
  if (const CUresult code = process::instance().gate(own); code != CUDA_SUCCESS) return code;
  const auto token = read_handle(handle);
  if (!pdptr || Flags != CU_IPC_MEM_LAZY_ENABLE_PEER_ACCESS || !token) return CUDA_ERROR_INVALID_VALUE;
  book().use();
  const std::lock_guard lock(book().opening());
  if (opened_memory* known = book().find(*token, own.context_handle())) {
    ++known->count;
    return *pdptr = known->base, CUDA_SUCCESS;
  }
  opened_memory made;
  const CUresult code = open_there(own, *token, made);
  if (code != CUDA_SUCCESS) return code;
  book().insert(made);
  return *pdptr = made.base, CUDA_SUCCESS;
}

CUresult ends::cuIpcOpenMemHandle(CUdeviceptr* pdptr, CUipcMemHandle handle, unsigned Flags) {
  return ends::cuIpcOpenMemHandle_v2(pdptr, handle, Flags);
}

CUresult ends::cuIpcCloseMemHandle(CUdeviceptr dptr) {
  process& p = process::instance();
  lane& own = this_lane();
  if (const CUresult code = p.gate(own); code != CUDA_SUCCESS) return code;
  const std::lock_guard lock(book().opening());
  opened_memory* known = book().find(dptr);
  if (!known) return CUDA_ERROR_INVALID_VALUE;
  if (--known->count > 0) return CUDA_SUCCESS;
  const opened_memory gone = *known;
  book().erase(dptr);
  p.memory().addresses().remove(dptr);
  request_of<api::opcode::cuIpcCloseMemHandle> r(own, marshal::unmap_body{gone.mapped_at, gone.mapped_size});
  r.in_context(gone.context);
  const CUresult code = r.call();
  if (slot_addresses* slot = p.memory().window_slot(gone.slot))
    slot->give_back(gone.mapped_at, gone.mapped_size);
  return code;
}

CUresult ends::cuIpcGetEventHandle(CUipcEventHandle* pHandle, CUevent event) {
  lane& own = this_lane();
  if (const CUresult code = process::instance().gate(own); code != CUDA_SUCCESS) return code;
  if (!pHandle || !event) return CUDA_ERROR_INVALID_VALUE;
  const auto* info = find_object<event_info>(event);
  if (!info || info->imported || !(info->flags & CU_EVENT_INTERPROCESS)) return CUDA_ERROR_INVALID_HANDLE;
  book().use();
  request_of<api::opcode::cuIpcGetEventHandle> r(own, marshal::handle_body{value_of(event)});
  marshal::share_token token;
  const CUresult code = call_for_token(r, token);
  if (code == CUDA_SUCCESS) write_handle(*pHandle, token);
  return code;
}

CUresult ends::cuIpcOpenEventHandle(CUevent* phEvent, CUipcEventHandle handle) {
  process& p = process::instance();
  lane& own = this_lane();
  if (const CUresult code = p.gate(own); code != CUDA_SUCCESS) return code;
  if (!phEvent) return CUDA_ERROR_INVALID_VALUE;
  const auto token = read_handle(handle);
  if (!token) return CUDA_ERROR_MAP_FAILED;
  book().use();
  auto info = std::make_unique<event_info>();
  info->flags = CU_EVENT_INTERPROCESS | CU_EVENT_DISABLE_TIMING;
  info->imported = true;
  info->context = own.context_handle();
  handle_table& events = p.objects().handles(api::handle_kind::event);
  const std::uint64_t made = events.reserve(std::move(info));
  if (!made) return CUDA_ERROR_OUT_OF_MEMORY;
  request_of<api::opcode::cuIpcOpenEventHandle> r(own, marshal::share_import_body{made, *token});
  if (const CUresult code = r.call(); code != CUDA_SUCCESS) return events.release(made), code;
  return *phEvent = reinterpret_cast<CUevent>(made), CUDA_SUCCESS;
}

}  // namespace outboard::frontend::cuda
