#include "backend/cuda/code/load.hh"

#include <cstring>

#include "backend/cuda/driver_call.hh"
#include "marshal/cuda/kernel_table.hh"

namespace outboard::backend {
namespace {

void read_contents(const marshal::load_body& body, fresh_code& of) {
  const marshal::image_target target{body.capability_major, body.capability_minor, body.wants_ptx, false};
  const auto table = marshal::parse_kernels(of.code->image.view(), target);
  of.prints = !table || table->prints;
  of.allocates = !table || table->allocates;
  for (const marshal::variable_info& v : table ? table->variables : std::vector<marshal::variable_info>())
    (v.space == marshal::variable_space::managed ? of.code->managed : of.code->variables).push_back(v.name);
  // What our reader cannot read the driver may still have loaded: the front-end then asks name by name.
  const std::vector<std::byte> raw = marshal::encode(table ? *table : marshal::kernel_table{});
  of.kernels.resize(raw.size());
  std::memcpy(of.kernels.data(), raw.data(), raw.size());
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

}  // namespace

CUresult load_code(const api::driver_table& driver, bool library, std::span<const std::byte> bytes,
                   const marshal::load_body& body, jit_arguments& jit, fresh_code& out) {
  auto image = marshal::module_image::decode(bytes);
  if (!image) return CUDA_ERROR_INVALID_IMAGE;
  out.code = std::make_shared<loaded_code>(std::move(*image));
  out.code->id = body.handle;
  const CUresult result =
      load_native(driver, library, pointer_for(out.code->image, library), jit, out.native);
  if (result == CUDA_SUCCESS) read_contents(body, out);
  return result;
}

}  // namespace outboard::backend
