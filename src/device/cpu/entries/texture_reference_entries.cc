// Entries of the chapter texture about references: the program reads back what it has set, and hears what a
// driver would refuse.
#include <algorithm>
#include <utility>

#include "device/cpu/machine.hh"

namespace outboard::device::cpu {
namespace {

constexpr unsigned known_flags = CU_TRSF_READ_AS_INTEGER | CU_TRSF_NORMALIZED_COORDINATES | CU_TRSF_SRGB |
                                 CU_TRSF_DISABLE_TRILINEAR_OPTIMIZATION;

/// Calls body(reference) with the references locked.
template <class Body>
CUresult on(CUtexref handle, Body&& body) {
  return with_context([&](context&, const context_ptr&) -> CUresult {
    const std::lock_guard lock(here().texture_references_mutex);
    const auto found = here().texture_references.find(reinterpret_cast<std::uint64_t>(handle));
    return found != nullptr ? body(*found) : CUDA_ERROR_INVALID_HANDLE;
  });
}

/// Sets one field where `good`.
template <auto Field, class T>
CUresult put(CUtexref handle, bool good, T value) {
  return on(handle, [&](texture_reference& r) -> CUresult {
    if (!good) return CUDA_ERROR_INVALID_VALUE;
    return r.*Field = value, CUDA_SUCCESS;
  });
}

template <auto Field, class T>
CUresult get(T* out, CUtexref handle) {
  return on(handle, [&](texture_reference& r) -> CUresult {
    if (out == nullptr) return CUDA_ERROR_INVALID_VALUE;
    return *out = r.*Field, CUDA_SUCCESS;
  });
}

/// What it is bound to; a reference that is bound to something else has none.
template <auto Field, class T>
CUresult get_bound(T* out, CUtexref handle) {
  return on(handle, [&](texture_reference& r) -> CUresult {
    if (out == nullptr || r.*Field == T{}) return CUDA_ERROR_INVALID_VALUE;
    return *out = r.*Field, CUDA_SUCCESS;
  });
}

CUresult create(CUtexref* out) {
  return with_context([&](context&, const context_ptr&) -> CUresult {
    if (out == nullptr) return CUDA_ERROR_INVALID_VALUE;
    const std::lock_guard lock(here().texture_references_mutex);
    const std::uint64_t made = here().texture_references.insert(std::make_shared<texture_reference>());
    return *out = reinterpret_cast<CUtexref>(made), CUDA_SUCCESS;
  });
}

CUresult destroy(CUtexref handle) {
  return with_context([&](context&, const context_ptr&) -> CUresult {
    const std::lock_guard lock(here().texture_references_mutex);
    return here().texture_references.remove(reinterpret_cast<std::uint64_t>(handle)) != nullptr
               ? CUDA_SUCCESS
               : CUDA_ERROR_INVALID_HANDLE;
  });
}

bool takes(CUarray_format format, unsigned channels) {
  ptx::texel texel{};
  return texel_of(format, texel) && (channels == 1 || channels == 2 || channels == 4);
}

void bind(texture_reference& r, CUarray array, CUmipmappedArray mipmap, CUdeviceptr address) {
  r.array = array, r.mipmap = mipmap, r.address = address;
}

CUresult set_array(CUtexref handle, CUarray array, unsigned) {
  return on(handle, [&](texture_reference& r) -> CUresult {
    const auto found = here().arrays.find(reinterpret_cast<std::uint64_t>(array));
    if (found == nullptr) return CUDA_ERROR_INVALID_VALUE;
    r.format = found->about.Format, r.channels = static_cast<int>(found->about.NumChannels);
    return bind(r, array, nullptr, 0), CUDA_SUCCESS;
  });
}

CUresult set_mipmapped_array(CUtexref handle, CUmipmappedArray array, unsigned) {
  return on(handle, [&](texture_reference& r) -> CUresult {
    const auto found = here().mipmapped_arrays.find(reinterpret_cast<std::uint64_t>(array));
    if (found == nullptr) return CUDA_ERROR_INVALID_VALUE;
    r.format = found->about.Format, r.channels = static_cast<int>(found->about.NumChannels);
    return bind(r, nullptr, array, 0), CUDA_SUCCESS;
  });
}

std::uint64_t alignment(CUdevice_attribute id) {
  return static_cast<std::uint64_t>(here().facts.attribute(id).value_or(1));
}

CUresult set_address(std::size_t* offset, CUtexref handle, CUdeviceptr address, std::size_t bytes) {
  return on(handle, [&](texture_reference& r) -> CUresult {
    const std::uint64_t past = address % alignment(CU_DEVICE_ATTRIBUTE_TEXTURE_ALIGNMENT);
    if (past != 0 && offset == nullptr) return CUDA_ERROR_INVALID_VALUE;
    if (!here().store->accessible(address, bytes, false)) return CUDA_ERROR_INVALID_VALUE;
    if (offset != nullptr) *offset = past;
    return bind(r, nullptr, nullptr, address), CUDA_SUCCESS;
  });
}

CUresult set_address_2d(CUtexref handle, const CUDA_ARRAY_DESCRIPTOR* about, CUdeviceptr address,
                        std::size_t pitch) {
  return on(handle, [&](texture_reference& r) -> CUresult {
    if (about == nullptr || !takes(about->Format, about->NumChannels) ||
        address % alignment(CU_DEVICE_ATTRIBUTE_TEXTURE_ALIGNMENT) != 0 ||
        pitch % alignment(CU_DEVICE_ATTRIBUTE_TEXTURE_PITCH_ALIGNMENT) != 0 ||
        !here().store->accessible(address, pitch * about->Height, false)) {
      return CUDA_ERROR_INVALID_VALUE;
    }
    r.format = about->Format, r.channels = static_cast<int>(about->NumChannels);
    return bind(r, nullptr, nullptr, address), CUDA_SUCCESS;
  });
}

CUresult set_format(CUtexref handle, CUarray_format format, int channels) {
  return on(handle, [&](texture_reference& r) -> CUresult {
    if (channels < 0 || !takes(format, static_cast<unsigned>(channels))) return CUDA_ERROR_INVALID_VALUE;
    return r.format = format, r.channels = channels, CUDA_SUCCESS;
  });
}

CUresult get_format(CUarray_format* format, int* channels, CUtexref handle) {
  return on(handle, [&](texture_reference& r) -> CUresult {
    if (format == nullptr || channels == nullptr) return CUDA_ERROR_INVALID_VALUE;
    return *format = r.format, *channels = r.channels, CUDA_SUCCESS;
  });
}

CUresult set_address_mode(CUtexref handle, int dimension, CUaddress_mode mode) {
  return on(handle, [&](texture_reference& r) -> CUresult {
    if (dimension < 0 || dimension > 2 || mode > CU_TR_ADDRESS_MODE_BORDER) return CUDA_ERROR_INVALID_VALUE;
    return r.modes[static_cast<std::size_t>(dimension)] = mode, CUDA_SUCCESS;
  });
}

CUresult get_address_mode(CUaddress_mode* out, CUtexref handle, int dimension) {
  return on(handle, [&](texture_reference& r) -> CUresult {
    if (out == nullptr || dimension < 0 || dimension > 2) return CUDA_ERROR_INVALID_VALUE;
    return *out = r.modes[static_cast<std::size_t>(dimension)], CUDA_SUCCESS;
  });
}

CUresult set_filter(CUtexref handle, CUfilter_mode mode) {
  return put<&texture_reference::filter>(handle, mode <= CU_TR_FILTER_MODE_LINEAR, mode);
}
CUresult set_mipmap_filter(CUtexref handle, CUfilter_mode mode) {
  return put<&texture_reference::mipmap_filter>(handle, mode <= CU_TR_FILTER_MODE_LINEAR, mode);
}
CUresult set_bias(CUtexref handle, float bias) { return put<&texture_reference::bias>(handle, true, bias); }
CUresult set_anisotropy(CUtexref handle, unsigned most) {
  return put<&texture_reference::anisotropy>(handle, true, most);
}
CUresult set_flags(CUtexref handle, unsigned flags) {
  return put<&texture_reference::flags>(handle, (flags & ~known_flags) == 0, flags);
}

CUresult set_clamp(CUtexref handle, float lowest, float highest) {
  return on(handle,
            [&](texture_reference& r) { return r.lowest = lowest, r.highest = highest, CUDA_SUCCESS; });
}
CUresult get_clamp(float* lowest, float* highest, CUtexref handle) {
  return on(handle, [&](texture_reference& r) -> CUresult {
    if (lowest == nullptr || highest == nullptr) return CUDA_ERROR_INVALID_VALUE;
    return *lowest = r.lowest, *highest = r.highest, CUDA_SUCCESS;
  });
}

CUresult set_border(CUtexref handle, float* color) {
  return on(handle, [&](texture_reference& r) -> CUresult {
    if (color == nullptr) return CUDA_ERROR_INVALID_VALUE;
    return std::copy_n(color, r.border.size(), r.border.begin()), CUDA_SUCCESS;
  });
}
CUresult get_border(float* color, CUtexref handle) {
  return on(handle, [&](texture_reference& r) -> CUresult {
    if (color == nullptr) return CUDA_ERROR_INVALID_VALUE;
    return std::ranges::copy(r.border, color), CUDA_SUCCESS;
  });
}

}  // namespace

void fill_texture_reference_entries(api::driver_table& t) {
  t.cuTexRefCreate = create;
  t.cuTexRefDestroy = destroy;
  t.cuTexRefSetArray = set_array;
  t.cuTexRefSetMipmappedArray = set_mipmapped_array;
  t.cuTexRefSetAddress_v2 = set_address;
  t.cuTexRefSetAddress2D_v2 = t.cuTexRefSetAddress2D_v3 = set_address_2d;
  t.cuTexRefSetFormat = set_format;
  t.cuTexRefSetAddressMode = set_address_mode;
  t.cuTexRefSetFilterMode = set_filter;
  t.cuTexRefSetMipmapFilterMode = set_mipmap_filter;
  t.cuTexRefSetMipmapLevelBias = set_bias;
  t.cuTexRefSetMipmapLevelClamp = set_clamp;
  t.cuTexRefSetMaxAnisotropy = set_anisotropy;
  t.cuTexRefSetBorderColor = set_border;
  t.cuTexRefSetFlags = set_flags;
  t.cuTexRefGetAddress_v2 = get_bound<&texture_reference::address, CUdeviceptr>;
  t.cuTexRefGetArray = get_bound<&texture_reference::array, CUarray>;
  t.cuTexRefGetMipmappedArray = get_bound<&texture_reference::mipmap, CUmipmappedArray>;
  t.cuTexRefGetAddressMode = get_address_mode;
  t.cuTexRefGetFilterMode = get<&texture_reference::filter, CUfilter_mode>;
  t.cuTexRefGetFormat = get_format;
  t.cuTexRefGetMipmapFilterMode = get<&texture_reference::mipmap_filter, CUfilter_mode>;
  t.cuTexRefGetMipmapLevelBias = get<&texture_reference::bias, float>;
  t.cuTexRefGetMipmapLevelClamp = get_clamp;
  t.cuTexRefGetMaxAnisotropy = [](int* out, CUtexref handle) -> CUresult {
    unsigned most = 0;
    const CUresult r = get<&texture_reference::anisotropy>(out != nullptr ? &most : nullptr, handle);
    if (r == CUDA_SUCCESS) *out = static_cast<int>(most);
    return r;
  };
  t.cuTexRefGetBorderColor = get_border;
  t.cuTexRefGetFlags = get<&texture_reference::flags, unsigned>;
}

}  // namespace outboard::device::cpu
