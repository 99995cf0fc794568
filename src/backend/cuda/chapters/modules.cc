#include "backend/cuda/code/load.hh"
#include "backend/cuda/driver_call.hh"
#include "backend/cuda/ends.hh"
#include "backend/cuda/session.hh"

namespace outboard::backend {

namespace {

/// Where a load is worth a hand-over of the turn even if no other thread asks yet: it takes the driver
/// longer.
constexpr std::size_t long_load = 64u << 10;

outcome load(call& c, const marshal::load_body& body, bool library) {
  std::vector<std::byte> bytes = c.take_upload();
  const bool keeps = std::exchange(c.own.keeps_next, false);
  std::optional<fresh_code> made = c.own.replaying ? c.session.take_loaded(body.handle) : std::nullopt;
  if (!made && bytes.size() != body.image_size) return outcome::malformed();
  if (!library && c.refused != CUDA_SUCCESS) return outcome::answer(c.refused);
  jit_arguments jit;
  if (!jit.take(body.options)) return outcome::malformed();
  record made_by = c.as_record();
  CUresult result = CUDA_SUCCESS;
  if (!made) {
    // What other threads of the client load or ask goes on beside it.
    if (c.core.others_ask() || bytes.size() >= long_load) c.give_up_turn();
    result = load_code(c.driver(), library, bytes, body, jit, made.emplace());
    bytes = {};  // the image has its own copy
  }
  if (!made->code) return outcome::answer(result);  // no driver has seen it
  marshal::put_body(c.reply, marshal::load_reply{std::move(made->kernels), jit.results()});
  c.keep_outputs_on_error = true;
  if (result != CUDA_SUCCESS) return outcome::answer(result);
  if (made->prints) c.session.unseen().code_prints();
  if (made->allocates) c.session.keep_here("its kernels may have allocated memory (malloc)");
  if (keeps) c.session.images().keep(made->code);
  if (!c.enter(body.handle, made->native, std::move(made_by), std::move(made->code)))
    return outcome::malformed();
  return outcome::answer(CUDA_SUCCESS);
}

/// A texture or surface that the module declares; it dies with the module.
template <class H>
outcome reference(call& c, const marshal::derive_body& body, CUresult (*get)(H*, CUmodule, const char*)) {
  CUmodule module = nullptr;
  H native = nullptr;
  CUresult code = c.objects().resolve(body.parent, module);
  if (code == CUDA_SUCCESS) code = call_driver(get, &native, module, body.name.c_str());
  return derived(c, api::handle_kind::module, body, code, native);
}

}  // namespace

namespace ends {

outcome upload(call& c, std::span<const std::byte> more) {
  if (!c.session.reserve_upload(more.size())) return outcome::malformed();
  c.own.upload.insert(c.own.upload.end(), more.begin(), more.end());
  return outcome::answer(CUDA_SUCCESS);
}

outcome cuModuleLoadData(call& c, const marshal::load_body& body) { return load(c, body, false); }

outcome cuLibraryLoadData(call& c, const marshal::load_body& body) { return load(c, body, true); }

outcome cuModuleUnload(call& c, const marshal::handle_body& body) {
  CUmodule module = nullptr;
  if (const CUresult code = c.objects().resolve(body.handle, module); code != CUDA_SUCCESS) {
    return outcome::answer(code);
  }
  const std::shared_ptr<void> image = c.objects().find(api::handle_kind::module, body.handle)->extra;
  const auto variables = managed_variables(c, body.handle);
  forget_code(c.objects(), body.handle);
  c.give_up_turn();  // it waits for the device
  c.session.mirrors().drop_within(variables);
  const CUresult code = call_driver(c.driver().cuModuleUnload, module);
  c.session.mirrors().drop_stale();
  return outcome::answer(code);
}

outcome cuModuleGetFunction(call& c, const marshal::derive_body& body) {
  CUmodule module = nullptr;
  CUfunction function = nullptr;
  CUresult code = c.objects().resolve(body.parent, module);
  if (code == CUDA_SUCCESS)
    code = call_driver(c.driver().cuModuleGetFunction, &function, module, body.name.c_str());
  return derived(c, api::handle_kind::module, body, code, function);
}

outcome cuModuleGetTexRef(call& c, const marshal::derive_body& body) {
  return reference<CUtexref>(c, body, c.driver().cuModuleGetTexRef);
}
outcome cuModuleGetSurfRef(call& c, const marshal::derive_body& body) {
  return reference<CUsurfref>(c, body, c.driver().cuModuleGetSurfRef);
}

outcome cuModuleGetGlobal_v2(call& c, const marshal::lookup_body& body) {
  CUmodule module = nullptr;
  CUdeviceptr address = 0;
  std::size_t size = 0;
  CUresult code = c.objects().resolve(body.parent, module);
  if (code == CUDA_SUCCESS)
    code = call_driver(c.driver().cuModuleGetGlobal_v2, &address, &size, module, body.name.c_str());
  if (code == CUDA_SUCCESS) note_use(c, body);
  marshal::put_body(c.reply, marshal::lookup_reply{address, size});
  return outcome::answer(code);
}

}  // namespace ends
}  // namespace outboard::backend
