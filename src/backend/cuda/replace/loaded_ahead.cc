// The second worker's half of preparation.hh.
#include <algorithm>
#include <utility>

#include "backend/cuda/driver_call.hh"
#include "backend/cuda/replace/parts.hh"
#include "backend/cuda/replace/preparation.hh"

namespace outboard::backend {

status loaded_ahead::load(std::span<const std::byte> preparation) {
  wire::reader from(preparation);
  auto part = marshal::take_body<preparation_part>(from);
  if (!from.finished()) return failure("what is to be loaded ahead came malformed");
  for (const waiting_context& wanted : part.contexts) {
    CUcontext& context = contexts_[wanted.id];
    const CUresult code = call_driver(driver_.cuDevicePrimaryCtxRetain, &context, wanted.device);
    if (code != CUDA_SUCCESS) return failure(failed_for("a context cannot be had here", code));
    retained_.push_back(wanted.device);
  }
  auto next = part.uses.begin();
  for (code_to_load& wanted : part.loads) {
    for (; next != part.uses.end() && next->ticket < wanted.ticket; ++next) use(*next);
    if (const CUresult code = load(wanted); code != CUDA_SUCCESS)
      return failure(failed_for("code of it cannot be loaded here", code));
    wanted.image = {};
  }
  std::for_each(next, part.uses.end(), [this](const code_to_use& wanted) { use(wanted); });
  return {};
}

CUresult loaded_ahead::enter(std::uint64_t context) {
  const auto found = contexts_.find(context);
  return found == contexts_.end() ? CUDA_ERROR_INVALID_CONTEXT
                                  : call_driver(driver_.cuCtxSetCurrent, found->second);
}

CUresult loaded_ahead::load(const code_to_load& wanted) {
  waiting made;
  made.library = wanted.library;
  if (!wanted.library) {
    if (const CUresult entered = enter(wanted.context); entered != CUDA_SUCCESS) return entered;
    made.context = contexts_.at(wanted.context);
  }
  jit_arguments jit;
  if (wanted.image.size() != wanted.body.image_size || !jit.take(wanted.body.options))
    return CUDA_ERROR_INVALID_IMAGE;
  const CUresult code =
      load_code(driver_, wanted.library, std::as_bytes(std::span(wanted.image)), wanted.body, jit, made.code);
  if (code == CUDA_SUCCESS) code_.insert_or_assign(wanted.body.handle, std::move(made));
  return code;
}

/// What fails here fails once more where the session does it, and is an error there.
void loaded_ahead::use(const code_to_use& wanted) {
  const auto found = code_.find(wanted.code);
  if (found == code_.end() || enter(wanted.context) != CUDA_SUCCESS) return;
  const waiting& w = found->second;
  const char* const name = wanted.name.c_str();
  CUfunction function = nullptr;
  CUdeviceptr address = 0;
  std::size_t size = 0;
  if (wanted.variable) {
    (void)(w.library ? call_driver(driver_.cuLibraryGetGlobal, &address, &size,
                                   static_cast<CUlibrary>(w.code.native), name)
                     : call_driver(driver_.cuModuleGetGlobal_v2, &address, &size,
                                   static_cast<CUmodule>(w.code.native), name));
    return;
  }
  CUresult code = CUDA_SUCCESS;
  if (w.library) {
    CUkernel kernel = nullptr;
    code = call_driver(driver_.cuLibraryGetKernel, &kernel, static_cast<CUlibrary>(w.code.native), name);
    if (code == CUDA_SUCCESS) code = call_driver(driver_.cuKernelGetFunction, &function, kernel);
  } else {
    code = call_driver(driver_.cuModuleGetFunction, &function, static_cast<CUmodule>(w.code.native), name);
  }
  if (code == CUDA_SUCCESS && driver_.cuFuncLoad) (void)call_driver(driver_.cuFuncLoad, function);
}

std::optional<fresh_code> loaded_ahead::take(std::uint64_t id) {
  auto found = code_.extract(id);
  return found.empty() ? std::nullopt : std::optional(std::move(found.mapped().code));
}

void loaded_ahead::drop_rest() {
  for (auto& [id, w] : std::exchange(code_, {})) {
    if (w.library) {
      (void)call_driver(driver_.cuLibraryUnload, static_cast<CUlibrary>(w.code.native));
    } else if (call_driver(driver_.cuCtxSetCurrent, w.context) == CUDA_SUCCESS) {
      (void)call_driver(driver_.cuModuleUnload, static_cast<CUmodule>(w.code.native));
    }
  }
  for (const CUdevice device : std::exchange(retained_, {}))
    (void)call_driver(driver_.cuDevicePrimaryCtxRelease_v2, device);
  contexts_.clear();
}

}  // namespace outboard::backend
