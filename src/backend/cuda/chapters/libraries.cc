#include "backend/cuda/code/code.hh"
#include "backend/cuda/driver_call.hh"
#include "backend/cuda/ends.hh"
#include "backend/cuda/session.hh"

namespace outboard::backend {
namespace {

using find_variable = CUresult(CUdeviceptr*, std::size_t*, CUlibrary, const char*);

outcome variable_of(call& c, const marshal::lookup_body& body, find_variable* entry) {
  CUlibrary library = nullptr;
  CUdeviceptr address = 0;
  std::size_t size = 0;
  CUresult code = c.refused;
  if (code == CUDA_SUCCESS) code = c.objects().resolve(body.parent, library);
  if (code == CUDA_SUCCESS) code = call_driver(entry, &address, &size, library, body.name.c_str());
  if (code == CUDA_SUCCESS) note_use(c, body);
  marshal::put_body(c.reply, marshal::lookup_reply{address, size});
  return outcome::answer(code);
}

}  // namespace

namespace ends {

outcome cuLibraryUnload(call& c, const marshal::handle_body& body) {
  CUlibrary library = nullptr;
  if (const CUresult code = c.objects().resolve(body.handle, library); code != CUDA_SUCCESS) {
    return outcome::answer(code);
  }
  // The driver may look at the image as long as the library lives.
  const std::shared_ptr<void> image = c.objects().find(api::handle_kind::library, body.handle)->extra;
  const auto variables = managed_variables(c, body.handle);
  forget_code(c.objects(), body.handle);
  c.give_up_turn();  // it waits for the device
  c.session.mirrors().drop_within(variables);
  const CUresult code = call_driver(c.driver().cuLibraryUnload, library);
  c.session.mirrors().drop_stale();
  return outcome::answer(code);
}

outcome cuLibraryGetKernel(call& c, const marshal::derive_body& body) {
  CUlibrary library = nullptr;
  CUkernel kernel = nullptr;
  CUresult code = c.objects().resolve(body.parent, library);
  if (code == CUDA_SUCCESS)
    code = call_driver(c.driver().cuLibraryGetKernel, &kernel, library, body.name.c_str());
  return derived(c, api::handle_kind::library, body, code, kernel);
}

outcome cuLibraryGetModule(call& c, const marshal::derive_body& body) {
  CUlibrary library = nullptr;
  CUmodule module = nullptr;
  CUresult code = c.refused;
  if (code == CUDA_SUCCESS) code = c.objects().resolve(body.parent, library);
  if (code == CUDA_SUCCESS) code = call_driver(c.driver().cuLibraryGetModule, &module, library);
  return derived(c, api::handle_kind::library, body, code, module);
}

outcome cuKernelGetFunction(call& c, const marshal::derive_body& body) {
  CUkernel kernel = nullptr;
  CUfunction function = nullptr;
  CUresult code = c.refused;
  if (code == CUDA_SUCCESS) code = c.objects().resolve(body.parent, kernel);
  if (code == CUDA_SUCCESS) code = call_driver(c.driver().cuKernelGetFunction, &function, kernel);
  return derived(c, api::handle_kind::kernel, body, code, function);
}

outcome cuLibraryGetGlobal(call& c, const marshal::lookup_body& body) {
  return variable_of(c, body, c.driver().cuLibraryGetGlobal);
}
outcome cuLibraryGetManaged(call& c, const marshal::lookup_body& body) {
  return variable_of(c, body, c.driver().cuLibraryGetManaged);
}

}  // namespace ends
}  // namespace outboard::backend
