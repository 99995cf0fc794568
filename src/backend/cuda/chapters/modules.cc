#include "backend/cuda/code/code.hh"
#include "backend/cuda/driver_call.hh"
#include "backend/cuda/ends.hh"
#include "backend/cuda/session.hh"
#include "marshal/cuda/kernel_table.hh"

namespace outboard::backend {

namespace {

/// Where a load is worth a hand-over of the turn even if no other thread asks yet: it takes the driver
/// longer.
constexpr std::size_t long_load = 64u << 10;

std::vector<std::uint8_t> contents_of(call& c, loaded_code& code, const marshal::load_body& body) {
  const marshal::image_target target{body.capability_major, body.capability_minor, body.wants_ptx, false};
  const auto table = marshal::parse_kernels(code.image.view(), target);
  if (!table || table->prints) c.session.unseen().code_prints();
  if (!table || table->allocates) c.session.keep_here("its kernels may have allocated memory (malloc)");
  for (const marshal::variable_info& v : table ? table->variables : std::vector<marshal::variable_info>()) {
    (v.space == marshal::variable_space::managed ? code.managed : code.variables).push_back(v.name);
  }
  // What our reader cannot read the driver may still have loaded: the front-end then asks name by name.
  const std::vector<std::byte> raw = marshal::encode(table ? *table : marshal::kernel_table{});
  std::vector<std::uint8_t> bytes(raw.size());
  std::memcpy(bytes.data(), raw.data(), raw.size());
  return bytes;
}

CUresult load_native(const api::driver_table& driver, bool library, const void* image, jit_arguments& jit,
                     void*& native) {
  if (library) {
    // The image stays with the object, so the driver needs no copy.
    CUlibraryOption option = CU_LIBRARY_BINARY_IS_PRESERVED;
    void* preserved = reinterpret_cast<void*>(1);
    CUlibrary made = nullptr;
    const CUresult code = call_driver(driver.cuLibraryLoadData, &made, image, jit.options(), jit.values(),
                                      jit.count(), &option, &preserved, 1);
    return native = made, code;
  }
  CUmodule made = nullptr;
  const CUresult code =
      call_driver(driver.cuModuleLoadDataEx, &made, image, jit.count(), jit.options(), jit.values());
  return native = made, code;
}

/// cuLibraryLoadData follows the wrapper that the compiler emits; cuModuleLoadData does not (200 on a 580
/// driver), it wants the fatbin itself.
const void* pointer_for(marshal::module_image& image, bool library) {
  const marshal::image_view view = image.view();
  const bool bare =
      !library && view.kind == marshal::image_kind::fatbin && !view.linked && view.parts.size() == 1;
  return bare ? view.parts.front().data() : image.load_pointer();
}

outcome load(call& c, bool library) {
  marshal::load_body body;
  std::vector<std::byte> bytes = c.take_upload();
  const bool keeps = std::exchange(c.own.keeps_next, false);
  if (!take_all(c, body) || bytes.size() != body.image_size) return outcome::malformed();
  if (!library && c.refused != CUDA_SUCCESS) return outcome::answer(c.refused);
  jit_arguments jit;
  if (!jit.take(body.options)) return outcome::malformed();
  record made_by = c.as_record();
  // What other threads of the client load or ask goes on beside it.
  if (c.core.others_ask() || bytes.size() >= long_load) c.give_up_turn();
  auto image = marshal::module_image::decode(bytes);
  if (!image) return outcome::answer(CUDA_ERROR_INVALID_IMAGE);
  bytes = {};  // the image has its own copy
  auto code = std::make_shared<loaded_code>(std::move(*image));
  void* native = nullptr;
  const CUresult result = load_native(c.driver(), library, pointer_for(code->image, library), jit, native);
  marshal::load_reply reply;
  reply.jit = jit.results();
  if (result == CUDA_SUCCESS) reply.kernels = contents_of(c, *code, body);
  marshal::put_body(c.reply, reply);
  c.keep_outputs_on_error = true;
  if (result != CUDA_SUCCESS) return outcome::answer(result);
  if (keeps) c.session.images().keep(code);
  code->id = body.handle;
  if (!c.enter(body.handle, native, std::move(made_by), std::move(code))) return outcome::malformed();
  return outcome::answer(CUDA_SUCCESS);
}

/// A texture or surface that the module declares; it dies with the module.
template <class H>
outcome reference(call& c, CUresult (*get)(H*, CUmodule, const char*)) {
  marshal::derive_body body;
  if (!take_all(c, body)) return outcome::malformed();
  CUmodule module = nullptr;
  H native = nullptr;
  CUresult code = c.objects().resolve(body.parent, module);
  if (code == CUDA_SUCCESS) code = call_driver(get, &native, module, body.name.c_str());
  return derived(c, api::handle_kind::module, body, code, native);
}

}  // namespace

namespace ends {

outcome upload(call& c) {
  const auto more = c.body.bytes(c.body.rest().size());
  if (!c.session.reserve_upload(more.size())) return outcome::malformed();
  c.own.upload.insert(c.own.upload.end(), more.begin(), more.end());
  return outcome::answer(CUDA_SUCCESS);
}

outcome cuModuleLoadData(call& c) { return load(c, false); }

outcome cuLibraryLoadData(call& c) { return load(c, true); }

outcome cuModuleUnload(call& c) {
  marshal::handle_body body;
  if (!take_all(c, body)) return outcome::malformed();
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

outcome cuModuleGetFunction(call& c) {
  marshal::derive_body body;
  if (!take_all(c, body)) return outcome::malformed();
  CUmodule module = nullptr;
  CUfunction function = nullptr;
  CUresult code = c.objects().resolve(body.parent, module);
  if (code == CUDA_SUCCESS)
    code = call_driver(c.driver().cuModuleGetFunction, &function, module, body.name.c_str());
  return derived(c, api::handle_kind::module, body, code, function);
}

outcome cuModuleGetTexRef(call& c) { return reference<CUtexref>(c, c.driver().cuModuleGetTexRef); }
outcome cuModuleGetSurfRef(call& c) { return reference<CUsurfref>(c, c.driver().cuModuleGetSurfRef); }

outcome cuModuleGetGlobal_v2(call& c) {
  marshal::lookup_body body;
  if (!take_all(c, body)) return outcome::malformed();
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
