// Handlers of memory and events between processes (cuIpc*). Memory is the window's: made for export by
// descriptor, whatever call made it. Events are the driver's own; their handles go from worker to worker.
#include "backend/cuda/driver_call.hh"
#include "backend/cuda/ends.hh"
#include "backend/cuda/sharing.hh"

namespace outboard::backend {
namespace {

CUresult offer_block(call& c, const marshal::share_block_body& body, kept_offer& out) {
  memory_map& memory = c.session.memory();
  if ((out = memory.offer_of(body.address))) return CUDA_SUCCESS;
  const auto piece = memory.shareable(body.address, body.size);
  if (!piece) return CUDA_ERROR_INVALID_VALUE;
  unique_fd fd;
  if (const CUresult code = export_memory(c.driver(), piece->memory, piece->piece, fd); code != CUDA_SUCCESS)
    return code;
  share_about about{piece->mapped, piece->offset, body.size, {}, {}};
  name_device(c, piece->device, about);
  out = offer_shared(c, share_class::memory, about, fd.get());
  if (!out) return CUDA_ERROR_OUT_OF_MEMORY;
  memory.keep_offer(body.address, piece->context, out);
  return CUDA_SUCCESS;
}

CUresult map_shared(call& c, const marshal::share_open_body& body, const shared_thing& found,
                    std::int32_t device, CUdevice user) {
  mapping wanted{body.address, found.about.mapped, 0, device, c.header.context, c.header.ticket, body.token};
  const CUresult code = call_driver(c.driver().cuMemImportFromShareableHandle, &wanted.memory,
                                    as_handle(found.descriptor), CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR);
  return code == CUDA_SUCCESS ? c.session.memory().map_imported(std::move(wanted), user) : code;
}

}  // namespace

namespace ends {

outcome cuIpcGetMemHandle(call& c, const marshal::share_block_body& body) {
  if (c.refused != CUDA_SUCCESS) return outcome::answer(c.refused);
  kept_offer offer;
  const CUresult code = offer_block(c, body, offer);
  put_token(c, offer);
  return outcome::answer(code);
}

outcome cuIpcOpenMemHandle_v2(call& c, const marshal::share_open_body& body) {
  if (c.refused != CUDA_SUCCESS) return outcome::answer(c.refused);
  const auto found = seek_shared(c, share_class::memory, body.token);
  if (!found || !found->descriptor) return outcome::answer(CUDA_ERROR_INVALID_VALUE);
  const share_about& about = found->about;
  if (about.offset > about.mapped || about.size > about.mapped - about.offset)
    return outcome::answer(CUDA_ERROR_INVALID_VALUE);
  CUdevice user = 0;
  if (const CUresult code = c.driver().cuCtxGetDevice(&user); code != CUDA_SUCCESS)
    return outcome::answer(code);
  std::int32_t device = find_device(c, about);
  if (device < 0) device = user;  // memory of a hidden device counts as the opener's
  marshal::put_body(c.reply,
                    marshal::share_open_reply{about.mapped, about.offset, about.size, device, found->own});
  if (body.address == 0) return outcome::answer(CUDA_SUCCESS);
  if (found->own) return outcome::answer(CUDA_ERROR_INVALID_CONTEXT);
  return outcome::answer(map_shared(c, body, *found, device, user));
}

outcome cuIpcCloseMemHandle(call& c, const marshal::unmap_body& body) {
  if (c.refused != CUDA_SUCCESS) return outcome::answer(c.refused);
  c.give_up_turn();
  const CUresult waited = c.driver().cuCtxSynchronize();
  const CUresult code = c.session.memory().unmap(body.address);
  return outcome::answer(waited != CUDA_SUCCESS ? waited : code);
}

outcome cuIpcGetEventHandle(call& c, const marshal::handle_body& body) {
  CUevent event = nullptr;
  CUresult code = c.refused;
  if (code == CUDA_SUCCESS) code = c.objects().resolve(body.handle, event);
  if (code != CUDA_SUCCESS) return outcome::answer(code);
  server_object& object = *c.objects().find(api::handle_kind::event, body.handle);
  kept_offer offer = offer_of(object);
  if (!offer) {
    CUipcEventHandle native{};
    code = call_driver(c.driver().cuIpcGetEventHandle, &native, event);
    if (code != CUDA_SUCCESS) return outcome::answer(code);
    share_about about;
    const auto* first = reinterpret_cast<const std::uint8_t*>(&native);
    about.native.assign(first, first + sizeof native);
    offer = offer_shared(c, share_class::event, about, c.session.descriptor_behind(native));
    if (!offer) code = CUDA_ERROR_OUT_OF_MEMORY;
    keep_offer(object, offer);
  }
  put_token(c, offer);
  return outcome::answer(code);
}

outcome cuIpcOpenEventHandle(call& c, const marshal::share_import_body& body) {
  CUresult code = c.refused;
  CUevent made = nullptr;
  if (code == CUDA_SUCCESS) {
    const auto found = seek_shared(c, share_class::event, body.token);
    CUipcEventHandle native{};
    if (!found || found->about.native.size() != sizeof native) {
      code = CUDA_ERROR_MAP_FAILED;  // what a driver says of a handle that is none
    } else if (found->own) {
      code = CUDA_ERROR_INVALID_CONTEXT;
    } else {
      std::memcpy(&native, found->about.native.data(), sizeof native);
      if (found->descriptor) native = c.session.with_descriptor(native, found->descriptor.get());
      code = call_driver(c.driver().cuIpcOpenEventHandle, &made, native);
    }
  }
  const bool kept = code == CUDA_SUCCESS ? c.objects().create(body.handle, made, c.as_record())
                                         : c.objects().fail(body.handle, code);
  return kept ? outcome::answer(code) : outcome::malformed();
}

}  // namespace ends
}  // namespace outboard::backend
