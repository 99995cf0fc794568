// Entries of the chapter texture: objects over arrays and plain memory. What the driver refuses is refused.
#include <algorithm>

#include "device/cpu/machine.hh"

namespace outboard::device::cpu {
namespace {

constexpr unsigned known_flags = CU_TRSF_READ_AS_INTEGER | CU_TRSF_NORMALIZED_COORDINATES | CU_TRSF_SRGB |
                                 CU_TRSF_DISABLE_TRILINEAR_OPTIMIZATION | CU_TRSF_SEAMLESS_CUBEMAP;

std::uint64_t limit(CUdevice_attribute id) {
  return static_cast<std::uint64_t>(here().facts.attribute(id).value_or(0));
}

bool channels_ok(unsigned n) { return n == 1 || n == 2 || n == 4; }

/// Plain memory as an image of one level. Whether it is there shows when a kernel reads it.
CUresult memory_image(CUdeviceptr address, CUarray_format format, unsigned channels, std::uint64_t width,
                      std::uint64_t height, std::uint64_t pitch, ptx::image& out) {
  if (!texel_of(format, out.format)) return CUDA_ERROR_INVALID_VALUE;
  if (!channels_ok(channels) || address == 0 || address % limit(CU_DEVICE_ATTRIBUTE_TEXTURE_ALIGNMENT) != 0)
    return CUDA_ERROR_INVALID_VALUE;
  out.channels = channels;
  const std::uint64_t row = width * out.texel_bytes();
  if (height > 1 && pitch < row) return CUDA_ERROR_INVALID_VALUE;
  out.borrowed = true;
  ptx::image_level level;
  if (!out.in_memory && (width == 0 || height == 0)) return out.levels = {level}, CUDA_SUCCESS;  // nothing
  level.data = reinterpret_cast<char*>(address);
  level.width = static_cast<std::uint32_t>(width), level.height = static_cast<std::uint32_t>(height);
  level.pitch = pitch, level.slice = pitch * height;
  out.levels = {level};
  return CUDA_SUCCESS;
}

CUresult image_of(const CUDA_RESOURCE_DESC& r, ptx::image& out) {
  if (r.flags != 0) return CUDA_ERROR_INVALID_VALUE;
  switch (r.resType) {
    case CU_RESOURCE_TYPE_ARRAY: {
      const auto found = here().arrays.find(reinterpret_cast<std::uint64_t>(r.res.array.hArray));
      if (found == nullptr) return CUDA_ERROR_INVALID_HANDLE;
      return out = found->memory, CUDA_SUCCESS;
    }
    case CU_RESOURCE_TYPE_MIPMAPPED_ARRAY: {
      const auto found =
          here().mipmapped_arrays.find(reinterpret_cast<std::uint64_t>(r.res.mipmap.hMipmappedArray));
      if (found == nullptr) return CUDA_ERROR_INVALID_HANDLE;
      return out = found->memory, CUDA_SUCCESS;
    }
    case CU_RESOURCE_TYPE_LINEAR: {
      const auto& m = r.res.linear;
      if (!texel_of(m.format, out.format))
        return is_format(m.format) ? CUDA_ERROR_NOT_SUPPORTED : CUDA_ERROR_INVALID_VALUE;
      if (!channels_ok(m.numChannels)) return CUDA_ERROR_INVALID_VALUE;
      const std::uint64_t width = m.sizeInBytes / (ptx::bytes_of(out.format) * m.numChannels);
      if (width > limit(CU_DEVICE_ATTRIBUTE_MAXIMUM_TEXTURE1D_LINEAR_WIDTH)) return CUDA_ERROR_INVALID_VALUE;
      out.in_memory = true;
      return memory_image(m.devPtr, m.format, m.numChannels, width, 1, m.sizeInBytes, out);
    }
    case CU_RESOURCE_TYPE_PITCH2D: {
      const auto& m = r.res.pitch2D;
      if (m.width > limit(CU_DEVICE_ATTRIBUTE_MAXIMUM_TEXTURE2D_LINEAR_WIDTH) ||
          m.height > limit(CU_DEVICE_ATTRIBUTE_MAXIMUM_TEXTURE2D_LINEAR_HEIGHT) ||
          m.pitchInBytes > limit(CU_DEVICE_ATTRIBUTE_MAXIMUM_TEXTURE2D_LINEAR_PITCH) ||
          m.pitchInBytes % limit(CU_DEVICE_ATTRIBUTE_TEXTURE_PITCH_ALIGNMENT) != 0) {
        return CUDA_ERROR_INVALID_VALUE;
      }
      return memory_image(m.devPtr, m.format, m.numChannels, m.width, m.height, m.pitchInBytes, out);
    }
    default:
      return CUDA_ERROR_INVALID_VALUE;
  }
}

/// A view's format: the same bytes a texel, read otherwise.
bool view_format(CUresourceViewFormat format, ptx::texel& texel, std::uint32_t& channels) {
  if (format == CU_RES_VIEW_FORMAT_NONE) return true;
  if (format > CU_RES_VIEW_FORMAT_FLOAT_4X32) return false;
  static constexpr ptx::texel kinds[] = {ptx::texel::u8,  ptx::texel::s8,  ptx::texel::u16, ptx::texel::s16,
                                         ptx::texel::u32, ptx::texel::s32, ptx::texel::f16, ptx::texel::f32};
  const unsigned n = static_cast<unsigned>(format) - CU_RES_VIEW_FORMAT_UINT_1X8;
  texel = kinds[n / 3];
  channels = 1u << n % 3;
  return true;
}

CUresult apply_view(const CUDA_RESOURCE_VIEW_DESC& v, ptx::image& image) {
  const std::uint32_t bytes = image.texel_bytes();
  if (!view_format(v.format, image.format, image.channels)) return CUDA_ERROR_NOT_SUPPORTED;
  if (image.texel_bytes() != bytes) return CUDA_ERROR_INVALID_VALUE;
  if (v.lastMipmapLevel < v.firstMipmapLevel || v.lastMipmapLevel >= image.levels.size() ||
      v.lastLayer < v.firstLayer) {
    return CUDA_ERROR_INVALID_VALUE;
  }
  image.levels = {image.levels.begin() + v.firstMipmapLevel, image.levels.begin() + v.lastMipmapLevel + 1};
  const bool layers = image.layered || image.cube;
  if (!layers && v.lastLayer != 0) return CUDA_ERROR_INVALID_VALUE;
  if (!image.layered) return CUDA_SUCCESS;
  // In 64 bits: the program may name any layer of 32.
  const std::uint64_t each = image.cube ? 6 : 1;
  const std::uint64_t first = v.firstLayer * each, end = (v.lastLayer + std::uint64_t{1}) * each;
  for (ptx::image_level& l : image.levels) {
    if (end > l.depth) return CUDA_ERROR_INVALID_VALUE;
    l.data += first * l.slice;
    l.depth = static_cast<std::uint32_t>(end - first);
  }
  return CUDA_SUCCESS;
}

CUresult sampling_of(const CUDA_TEXTURE_DESC& t, const CUDA_RESOURCE_DESC& r, const ptx::image& image,
                     ptx::sampling& out) {
  if (t.flags & ~known_flags) return CUDA_ERROR_INVALID_VALUE;
  const bool plain = r.resType == CU_RESOURCE_TYPE_LINEAR;
  if (t.filterMode > CU_TR_FILTER_MODE_LINEAR || t.mipmapFilterMode > CU_TR_FILTER_MODE_LINEAR)
    return CUDA_ERROR_INVALID_VALUE;
  for (std::size_t d = 0; d < 3; ++d) {
    if (t.addressMode[d] > CU_TR_ADDRESS_MODE_BORDER) return CUDA_ERROR_INVALID_VALUE;
    static constexpr ptx::address_mode modes[] = {ptx::address_mode::wrap, ptx::address_mode::clamp,
                                                  ptx::address_mode::mirror, ptx::address_mode::border};
    out.modes[d] = modes[t.addressMode[d]];
  }
  out.linear = !plain && t.filterMode == CU_TR_FILTER_MODE_LINEAR;
  out.between_levels = t.mipmapFilterMode == CU_TR_FILTER_MODE_LINEAR;
  out.normalized = t.flags & CU_TRSF_NORMALIZED_COORDINATES;
  out.as_integer = t.flags & CU_TRSF_READ_AS_INTEGER;
  out.srgb = t.flags & CU_TRSF_SRGB;
  out.seamless = t.flags & CU_TRSF_SEAMLESS_CUBEMAP;
  out.bias = t.mipmapLevelBias, out.lowest = t.minMipmapLevelClamp, out.highest = t.maxMipmapLevelClamp;
  std::copy(std::begin(t.borderColor), std::end(t.borderColor), out.border.begin());
  if (out.seamless && !image.cube) return CUDA_ERROR_INVALID_VALUE;
  if (r.resType == CU_RESOURCE_TYPE_MIPMAPPED_ARRAY && !out.normalized) return CUDA_ERROR_INVALID_VALUE;
  if (out.gives_integers(image.format)) out.linear = false;  // integers are not mixed, whatever is asked
  return CUDA_SUCCESS;
}

CUresult enter(std::unique_ptr<texture_object> made, unsigned long long* out) {
  const std::uint64_t handle = here().textures.insert(std::move(made));
  if (handle == 0) return CUDA_ERROR_OUT_OF_MEMORY;
  return *out = handle, CUDA_SUCCESS;
}

CUresult create_texture(CUtexObject* out, const CUDA_RESOURCE_DESC* resource,
                        const CUDA_TEXTURE_DESC* sampling, const CUDA_RESOURCE_VIEW_DESC* view) {
  return with_context([&](context&, const context_ptr& c) -> CUresult {
    if (out == nullptr || resource == nullptr || sampling == nullptr) return CUDA_ERROR_INVALID_VALUE;
    auto made = std::make_unique<texture_object>();
    made->owner = c, made->resource = *resource, made->sampling = *sampling;
    ptx::texture& t = made->texture;
    if (const CUresult r = image_of(*resource, t.memory); r != CUDA_SUCCESS) return r;
    if (view != nullptr) {
      const bool viewable = resource->resType == CU_RESOURCE_TYPE_ARRAY ||
                            resource->resType == CU_RESOURCE_TYPE_MIPMAPPED_ARRAY;
      // Of plain memory a view is taken and means nothing.
      if (const CUresult r = viewable ? apply_view(*view, t.memory) : CUDA_SUCCESS; r != CUDA_SUCCESS)
        return r;
      made->view = *view, made->has_view = true;
    }
    if (const CUresult r = sampling_of(*sampling, *resource, t.memory, t.how); r != CUDA_SUCCESS) return r;
    return enter(std::move(made), out);
  });
}

CUresult create_surface(CUsurfObject* out, const CUDA_RESOURCE_DESC* resource) {
  return with_context([&](context&, const context_ptr& c) -> CUresult {
    if (out == nullptr || resource == nullptr || resource->resType != CU_RESOURCE_TYPE_ARRAY)
      return CUDA_ERROR_INVALID_VALUE;
    const auto array = here().arrays.find(reinterpret_cast<std::uint64_t>(resource->res.array.hArray));
    if (array == nullptr) return CUDA_ERROR_INVALID_HANDLE;
    // CUDA_ARRAY3D_SURFACE_LDST is asked for by the manual and by no driver.
    if (resource->flags != 0) return CUDA_ERROR_INVALID_VALUE;
    auto made = std::make_unique<texture_object>();
    made->owner = c, made->resource = *resource, made->surface = true;
    made->texture.memory = array->memory;
    return enter(std::move(made), out);
  });
}

/// The object of the right kind, or nullptr.
const texture_object* find(std::uint64_t handle, bool surface) {
  const texture_object* found = here().textures.find(handle);
  return found != nullptr && found->surface == surface ? found : nullptr;
}

template <bool Surface>
CUresult destroy(unsigned long long handle) {
  return with_context([&](context&, const context_ptr&) -> CUresult {
    const texture_object* found = find(handle, Surface);
    if (found == nullptr) return CUDA_SUCCESS;  // as a driver says of any value
    // Kernels hold pointers to it.
    here().work.synchronize(context_ptr(found->owner)->group);
    here().textures.remove(handle);
    return CUDA_SUCCESS;
  });
}

template <bool Surface>
CUresult get_resource(CUDA_RESOURCE_DESC* out, unsigned long long handle) {
  return with_context([&](context&, const context_ptr&) -> CUresult {
    const texture_object* found = find(handle, Surface);
    if (out == nullptr || found == nullptr) return CUDA_ERROR_INVALID_VALUE;
    return *out = found->resource, CUDA_SUCCESS;
  });
}

CUresult get_sampling(CUDA_TEXTURE_DESC* out, CUtexObject handle) {
  return with_context([&](context&, const context_ptr&) -> CUresult {
    const texture_object* found = find(handle, false);
    if (out == nullptr || found == nullptr) return CUDA_ERROR_INVALID_VALUE;
    return *out = found->sampling, CUDA_SUCCESS;
  });
}

CUresult get_view(CUDA_RESOURCE_VIEW_DESC* out, CUtexObject handle) {
  return with_context([&](context&, const context_ptr&) -> CUresult {
    const texture_object* found = find(handle, false);
    if (out == nullptr || found == nullptr || !found->has_view) return CUDA_ERROR_INVALID_VALUE;
    return *out = found->view, CUDA_SUCCESS;
  });
}

CUresult linear_width(std::size_t* out, CUarray_format format, unsigned channels, CUdevice device) {
  return after_init([&]() -> CUresult {
    ptx::texel texel{};
    if (out == nullptr || !texel_of(format, texel) || !channels_ok(channels)) return CUDA_ERROR_INVALID_VALUE;
    if (device != 0) return CUDA_ERROR_INVALID_DEVICE;
    return *out = limit(CU_DEVICE_ATTRIBUTE_MAXIMUM_TEXTURE1D_LINEAR_WIDTH), CUDA_SUCCESS;
  });
}

}  // namespace

void fill_texture_entries(api::driver_table& t) {
  t.cuTexObjectCreate = create_texture;
  t.cuTexObjectDestroy = destroy<false>;
  t.cuTexObjectGetResourceDesc = get_resource<false>;
  t.cuTexObjectGetTextureDesc = get_sampling;
  t.cuTexObjectGetResourceViewDesc = get_view;
  t.cuSurfObjectCreate = create_surface;
  t.cuSurfObjectDestroy = destroy<true>;
  t.cuSurfObjectGetResourceDesc = get_resource<true>;
  t.cuDeviceGetTexture1DLinearMaxWidth = linear_width;
}

}  // namespace outboard::device::cpu
