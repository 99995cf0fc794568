// The linker of the chapter module: PTX texts in, one image out that cuModuleLoadData and cuLibraryLoadData
// take.
#include <cstdlib>
#include <cstring>

#include "device/cpu/machine.hh"
#include "ptx/text/fatbin.hh"

namespace outboard::device::cpu {
namespace {

using link_ptr = std::shared_ptr<link_object>;

constexpr char empty_module[] = ".version 7.0\n.target sm_50\n.address_size 64\n";

link_ptr find(CUlinkState state) { return here().links.find(reinterpret_cast<std::uint64_t>(state)); }

CUresult create(unsigned count, CUjit_option* options, void** values, CUlinkState* out) {
  return with_context([&](context&, const context_ptr&) -> CUresult {
    if (out == nullptr) return CUDA_ERROR_INVALID_VALUE;
    auto l = std::make_shared<link_object>();
    l->options = jit_options(count, options, values);
    return *out = reinterpret_cast<CUlinkState>(here().links.insert(std::move(l))), CUDA_SUCCESS;
  });
}

CUresult add_text(link_object& l, std::span<const std::byte> image) {
  auto text = ptx::image_ptx(image, static_cast<std::uint32_t>(here().facts.capability));
  if (!text) {
    l.options.write_error(text.error().message);
    return text.error().next == action::fall_back ? CUDA_ERROR_NO_BINARY_FOR_GPU : CUDA_ERROR_INVALID_IMAGE;
  }
  // Compiled now, so that an error names this input.
  auto parsed = ptx::parse(*text);
  if (!parsed) {
    l.options.write_error(parsed.error().message);
    return parsed.error().next == action::fall_back ? CUDA_ERROR_UNSUPPORTED_PTX_VERSION
                                                    : CUDA_ERROR_INVALID_PTX;
  }
  if (const status known = ptx::check_part(**parsed); !known) {
    l.options.write_error(known.error().message);
    return CUDA_ERROR_INVALID_PTX;
  }
  l.parts.push_back(std::move(*parsed));
  if (const auto linked = ptx::link(l.parts); !linked) {  // two definitions of one name
    l.options.write_error(linked.error().message);
    l.parts.pop_back();
    return CUDA_ERROR_INVALID_SOURCE;
  }
  l.texts.push_back(std::move(*text));
  return CUDA_SUCCESS;
}

CUresult add_data(CUlinkState state, CUjitInputType type, void* data, std::size_t size, const char*, unsigned,
                  CUjit_option*, void**) {
  return with_context([&](context&, const context_ptr&) -> CUresult {
    const link_ptr l = find(state);
    if (l == nullptr) return CUDA_ERROR_INVALID_HANDLE;
    if (data == nullptr || size == 0) return CUDA_ERROR_INVALID_VALUE;
    if (type == CU_JIT_INPUT_PTX || type == CU_JIT_INPUT_FATBINARY) {
      return add_text(*l, {static_cast<const std::byte*>(data), size});
    }
    l->options.write_error("only PTX can be linked on this device");
    const bool elf = size >= 4 && std::memcmp(data, "\177ELF", 4) == 0;
    return type == CU_JIT_INPUT_CUBIN && !elf ? CUDA_ERROR_INVALID_IMAGE : CUDA_ERROR_NO_BINARY_FOR_GPU;
  });
}

/// Unresolved symbols show when code gets its addresses: a trial in memory of the host.
result<void> try_instance(const std::vector<ptx::module_ptr>& parts) {
  auto linked = ptx::link(parts);
  if (!linked) return linked.error();
  std::vector<std::unique_ptr<std::byte, decltype(&std::free)>> blocks;
  auto loaded = ptx::instantiate(std::move(*linked), [&](const ptx::variable_info& v) -> result<void*> {
    const std::size_t align = std::max<std::size_t>(v.align, 16);
    void* block = std::aligned_alloc(align, (std::max<std::size_t>(v.size, 1) + align - 1) / align * align);
    if (block == nullptr) return failure("no memory for " + v.name);
    blocks.emplace_back(static_cast<std::byte*>(block), &std::free);
    return block;
  });
  if (!loaded) return loaded.error();
  return {};
}

CUresult complete(CUlinkState state, void** image, std::size_t* size) {
  return with_context([&](context&, const context_ptr&) -> CUresult {
    const link_ptr l = find(state);
    if (l == nullptr) return CUDA_ERROR_INVALID_HANDLE;
    if (image == nullptr) return CUDA_ERROR_INVALID_VALUE;
    if (l->texts.empty()) {  // of nothing comes an image of nothing
      if (const CUresult r = add_text(*l, std::as_bytes(std::span(empty_module))); r != CUDA_SUCCESS)
        return r;
    }
    if (const status tried = try_instance(l->parts); !tried) {
      l->options.write_error(tried.error().message);
      return CUDA_ERROR_INVALID_SOURCE;
    }
    l->image = pack_texts(l->texts);
    if (size != nullptr) *size = l->image.size();
    return *image = l->image.data(), CUDA_SUCCESS;
  });
}

CUresult destroy(CUlinkState state) {
  return with_context([&](context&, const context_ptr&) -> CUresult {
    return here().links.remove(reinterpret_cast<std::uint64_t>(state)) ? CUDA_SUCCESS
                                                                       : CUDA_ERROR_INVALID_HANDLE;
  });
}

}  // namespace

void fill_link_entries(api::driver_table& t) {
  t.cuLinkCreate = t.cuLinkCreate_v2 = create;
  t.cuLinkAddData = t.cuLinkAddData_v2 = add_data;
  t.cuLinkComplete = complete;
  t.cuLinkDestroy = destroy;
}

}  // namespace outboard::device::cpu
