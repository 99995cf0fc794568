// Entries of the chapter memory that make, describe and destroy arrays.
#include "device/cpu/array.hh"

#include <algorithm>
#include <bit>

#include "device/cpu/machine.hh"

namespace outboard::device::cpu {

bool texel_of(CUarray_format format, ptx::texel& out) {
  switch (format) {
    case CU_AD_FORMAT_UNSIGNED_INT8:
      return out = ptx::texel::u8, true;
    case CU_AD_FORMAT_SIGNED_INT8:
      return out = ptx::texel::s8, true;
    case CU_AD_FORMAT_UNSIGNED_INT16:
      return out = ptx::texel::u16, true;
    case CU_AD_FORMAT_SIGNED_INT16:
      return out = ptx::texel::s16, true;
    case CU_AD_FORMAT_UNSIGNED_INT32:
      return out = ptx::texel::u32, true;
    case CU_AD_FORMAT_SIGNED_INT32:
      return out = ptx::texel::s32, true;
    case CU_AD_FORMAT_HALF:
      return out = ptx::texel::f16, true;
    case CU_AD_FORMAT_FLOAT:
      return out = ptx::texel::f32, true;
    default:
      return false;
  }
}

bool is_format(CUarray_format format) {
  ptx::texel texel{};
  const auto n = static_cast<unsigned>(format);
  const auto within = [n](unsigned first, unsigned last) { return n >= first && n <= last; };
  return texel_of(format, texel) || n == CU_AD_FORMAT_UNORM_INT_101010_2 || n == CU_AD_FORMAT_NV12 ||
         (within(CU_AD_FORMAT_BC1_UNORM, CU_AD_FORMAT_Y410) && n != 0xa0) ||
         within(CU_AD_FORMAT_Y416, CU_AD_FORMAT_Y444_PLANAR10) ||
         within(CU_AD_FORMAT_UNORM_INT8X1, CU_AD_FORMAT_SNORM_INT16X4);
}

array_size size_of(const CUDA_ARRAY3D_DESCRIPTOR& about) {
  const auto some = [](std::size_t n) { return static_cast<std::uint32_t>(std::max<std::size_t>(n, 1)); };
  return {some(about.Width), some(about.Height), some(about.Depth)};
}

namespace {

constexpr unsigned layered = CUDA_ARRAY3D_LAYERED, cubemap = CUDA_ARRAY3D_CUBEMAP;
constexpr unsigned known_flags = layered | cubemap | CUDA_ARRAY3D_SURFACE_LDST | CUDA_ARRAY3D_TEXTURE_GATHER |
                                 CUDA_ARRAY3D_COLOR_ATTACHMENT;

int limit(CUdevice_attribute id) { return here().facts.attribute(id).value_or(0); }

bool within(std::size_t n, CUdevice_attribute id) { return n <= static_cast<std::size_t>(limit(id)); }

/// The shapes of cuArray3DCreate's table, and the device's limits for each.
bool allowed_cube(const CUDA_ARRAY3D_DESCRIPTOR& d) {
  if (d.Width != d.Height || !within(d.Width, CU_DEVICE_ATTRIBUTE_MAXIMUM_TEXTURECUBEMAP_WIDTH)) return false;
  if (!(d.Flags & layered)) return d.Depth == 6;
  return d.Depth != 0 && d.Depth % 6 == 0 &&
         within(d.Depth, CU_DEVICE_ATTRIBUTE_MAXIMUM_TEXTURECUBEMAP_LAYERED_LAYERS);
}

bool allowed_layers(const CUDA_ARRAY3D_DESCRIPTOR& d) {
  if (d.Depth == 0) return false;
  if (d.Height == 0) {
    return within(d.Width, CU_DEVICE_ATTRIBUTE_MAXIMUM_TEXTURE1D_LAYERED_WIDTH) &&
           within(d.Depth, CU_DEVICE_ATTRIBUTE_MAXIMUM_TEXTURE1D_LAYERED_LAYERS);
  }
  return within(d.Width, CU_DEVICE_ATTRIBUTE_MAXIMUM_TEXTURE2D_LAYERED_WIDTH) &&
         within(d.Height, CU_DEVICE_ATTRIBUTE_MAXIMUM_TEXTURE2D_LAYERED_HEIGHT) &&
         within(d.Depth, CU_DEVICE_ATTRIBUTE_MAXIMUM_TEXTURE2D_LAYERED_LAYERS);
}

bool allowed_shape(const CUDA_ARRAY3D_DESCRIPTOR& d) {
  if (d.Width == 0 || (d.NumChannels != 1 && d.NumChannels != 2 && d.NumChannels != 4)) return false;
  if ((d.Flags & CUDA_ARRAY3D_TEXTURE_GATHER) && (d.Height == 0 || d.Depth != 0)) return false;
  if (d.Flags & cubemap) return allowed_cube(d);
  if (d.Flags & layered) return allowed_layers(d);
  if (d.Depth != 0) {
    return d.Height != 0 && within(d.Width, CU_DEVICE_ATTRIBUTE_MAXIMUM_TEXTURE3D_WIDTH) &&
           within(d.Height, CU_DEVICE_ATTRIBUTE_MAXIMUM_TEXTURE3D_HEIGHT) &&
           within(d.Depth, CU_DEVICE_ATTRIBUTE_MAXIMUM_TEXTURE3D_DEPTH);
  }
  if (d.Height != 0) {
    return within(d.Width, CU_DEVICE_ATTRIBUTE_MAXIMUM_TEXTURE2D_WIDTH) &&
           within(d.Height, CU_DEVICE_ATTRIBUTE_MAXIMUM_TEXTURE2D_HEIGHT);
  }
  return within(d.Width, CU_DEVICE_ATTRIBUTE_MAXIMUM_TEXTURE1D_WIDTH);
}

CUDA_ARRAY3D_DESCRIPTOR level_of(CUDA_ARRAY3D_DESCRIPTOR d, unsigned level) {
  const auto shrink = [&](std::size_t n) { return n ? std::max<std::size_t>(n >> level, 1) : 0; };
  d.Width = shrink(d.Width), d.Height = shrink(d.Height);
  if (!(d.Flags & (layered | cubemap))) d.Depth = shrink(d.Depth);
  return d;
}

/// Those of the manual, which this device need not have.
constexpr unsigned every_flag = 0x1ff;

/// A format that is none, or one that this device does not have.
CUresult no_texel(CUarray_format format) {
  const bool classic = format >= 0xb0 || format == CU_AD_FORMAT_BC6H_UF16;
  return classic ? CUDA_ERROR_NOT_SUPPORTED : CUDA_ERROR_INVALID_VALUE;
}

/// Levels laid out behind each other in one block of device memory.
CUresult lay_out(const context_ptr& c, const CUDA_ARRAY3D_DESCRIPTOR& about, unsigned levels, ptx::image& out,
                 std::uint64_t& block) {
  if (about.Flags & ~every_flag) return CUDA_ERROR_INVALID_VALUE;
  if (about.Flags & ~known_flags) return CUDA_ERROR_NOT_SUPPORTED;
  if (!texel_of(about.Format, out.format)) return no_texel(about.Format);
  if (!allowed_shape(about)) return CUDA_ERROR_INVALID_VALUE;
  out.channels = about.NumChannels;
  out.layered = about.Flags & layered, out.cube = about.Flags & cubemap;
  std::uint64_t bytes = 0;
  for (unsigned level = 0; level < levels; ++level) {
    const array_size size = size_of(level_of(about, level));
    ptx::image_level l;
    l.width = size.width, l.height = size.height, l.depth = size.depth;
    // Rows begin where any access of a surface is aligned.
    l.pitch = (std::uint64_t{size.width} * out.texel_bytes() + 15) & ~std::uint64_t{15};
    l.slice = l.pitch * size.height;
    l.data = reinterpret_cast<char*>(bytes);
    // The limits keep each factor small enough that nothing overflows; the sum is the memory's to refuse.
    bytes += l.slice * size.depth;
    out.levels.push_back(l);
  }
  if (const CUresult r = here().store->allocate(bytes, 0, memory_kind::device, c->id, 0, block);
      r != CUDA_SUCCESS) {
    return r;
  }
  for (ptx::image_level& l : out.levels) {
    l.data = reinterpret_cast<char*>(block + reinterpret_cast<std::uintptr_t>(l.data));  // offsets until now
  }
  return CUDA_SUCCESS;
}

std::shared_ptr<array_object> find_array(CUarray handle) {
  return here().arrays.find(reinterpret_cast<std::uint64_t>(handle));
}
std::shared_ptr<mipmapped_array_object> find_mipmapped(CUmipmappedArray handle) {
  return here().mipmapped_arrays.find(reinterpret_cast<std::uint64_t>(handle));
}

CUresult create_3d(CUarray* out, const CUDA_ARRAY3D_DESCRIPTOR* about) {
  return with_context([&](context&, const context_ptr& c) -> CUresult {
    if (out == nullptr || about == nullptr) return CUDA_ERROR_INVALID_VALUE;
    auto made = std::make_shared<array_object>();
    made->owner = c;
    made->about = *about;
    if (const CUresult r = lay_out(c, *about, 1, made->memory, made->block); r != CUDA_SUCCESS) return r;
    *out = reinterpret_cast<CUarray>(here().arrays.insert(std::move(made)));
    return CUDA_SUCCESS;
  });
}

CUresult create_2d(CUarray* out, const CUDA_ARRAY_DESCRIPTOR* about) {
  CUDA_ARRAY3D_DESCRIPTOR wide{};
  if (about != nullptr) {
    wide.Width = about->Width, wide.Height = about->Height;
    wide.Format = about->Format, wide.NumChannels = about->NumChannels;
  }
  return create_3d(about != nullptr ? out : nullptr, &wide);
}

/// What programs still do with it is done first, as on a board.
CUresult destroy(CUarray handle) {
  return with_context([&](context&, const context_ptr&) -> CUresult {
    const auto found = find_array(handle);
    if (found == nullptr || found->block == 0) return CUDA_ERROR_INVALID_HANDLE;
    here().work.synchronize(found->owner->group);
    here().arrays.remove(reinterpret_cast<std::uint64_t>(handle));
    return here().store->release(found->block);
  });
}

CUresult describe_3d(CUDA_ARRAY3D_DESCRIPTOR* out, CUarray handle) {
  return with_context([&](context&, const context_ptr&) -> CUresult {
    const auto found = find_array(handle);
    if (found == nullptr) return CUDA_ERROR_INVALID_HANDLE;
    if (out == nullptr) return CUDA_ERROR_INVALID_VALUE;
    return *out = found->about, CUDA_SUCCESS;
  });
}

CUresult describe_2d(CUDA_ARRAY_DESCRIPTOR* out, CUarray handle) {
  CUDA_ARRAY3D_DESCRIPTOR d{};
  const CUresult r = describe_3d(out != nullptr ? &d : nullptr, handle);
  if (r == CUDA_SUCCESS) *out = {d.Width, d.Height, d.Format, d.NumChannels};
  return r;
}

CUresult create_mipmapped(CUmipmappedArray* out, const CUDA_ARRAY3D_DESCRIPTOR* about, unsigned levels) {
  return with_context([&](context&, const context_ptr& c) -> CUresult {
    if (out == nullptr || about == nullptr || levels == 0) return CUDA_ERROR_INVALID_VALUE;
    const std::size_t longest = std::max({about->Width, about->Height, about->Depth, std::size_t{1}});
    levels = std::min(levels, static_cast<unsigned>(std::bit_width(longest)));
    auto made = std::make_shared<mipmapped_array_object>();
    made->owner = c;
    made->about = *about;
    made->levels.resize(levels);
    if (const CUresult r = lay_out(c, *about, levels, made->memory, made->block); r != CUDA_SUCCESS) return r;
    *out = reinterpret_cast<CUmipmappedArray>(here().mipmapped_arrays.insert(std::move(made)));
    return CUDA_SUCCESS;
  });
}

CUresult get_level(CUarray* out, CUmipmappedArray handle, unsigned level) {
  return with_context([&](context&, const context_ptr&) -> CUresult {
    const auto found = find_mipmapped(handle);
    if (found == nullptr) return CUDA_ERROR_INVALID_HANDLE;
    if (out == nullptr || level >= found->levels.size()) return CUDA_ERROR_INVALID_VALUE;
    std::lock_guard lock(found->mutex);
    std::uint64_t& known = found->levels[level];
    if (known == 0) {
      auto made = std::make_shared<array_object>();
      made->owner = found->owner;
      made->about = level_of(found->about, level);
      made->memory = found->memory;
      made->memory.levels = {found->memory.levels[level]};
      known = here().arrays.insert(std::move(made));
    }
    return *out = reinterpret_cast<CUarray>(known), CUDA_SUCCESS;
  });
}

CUresult destroy_mipmapped(CUmipmappedArray handle) {
  return with_context([&](context&, const context_ptr&) -> CUresult {
    const auto found = find_mipmapped(handle);
    if (found == nullptr) return CUDA_ERROR_INVALID_HANDLE;
    here().work.synchronize(found->owner->group);
    here().mipmapped_arrays.remove(reinterpret_cast<std::uint64_t>(handle));
    for (const std::uint64_t level : found->levels) {
      if (level != 0) here().arrays.remove(level);
    }
    return here().store->release(found->block);
  });
}

// No array of this device is planar, sparse or mapped later: what asks for such a thing is told so.
CUresult get_plane(CUarray* out, CUarray handle, unsigned) {
  return with_context([&](context&, const context_ptr&) -> CUresult {
    return out != nullptr && find_array(handle) == nullptr ? CUDA_ERROR_INVALID_HANDLE
                                                           : CUDA_ERROR_INVALID_VALUE;
  });
}

template <class Out, class Handle, class... More>
CUresult no_such_property(Out* out, Handle handle, More...) {
  return with_context([&](context&, const context_ptr&) -> CUresult {
    bool known = false;
    if constexpr (std::is_same_v<Handle, CUarray>) {
      known = find_array(handle) != nullptr;
    } else {
      known = find_mipmapped(handle) != nullptr;
    }
    return out != nullptr && !known ? CUDA_ERROR_INVALID_HANDLE : CUDA_ERROR_INVALID_VALUE;
  });
}

}  // namespace

void fill_array_entries(api::driver_table& t) {
  t.cuArrayCreate_v2 = create_2d;
  t.cuArray3DCreate_v2 = create_3d;
  t.cuArrayDestroy = destroy;
  t.cuArrayGetDescriptor_v2 = describe_2d;
  t.cuArray3DGetDescriptor_v2 = describe_3d;
  t.cuArrayGetPlane = get_plane;
  t.cuMipmappedArrayCreate = create_mipmapped;
  t.cuMipmappedArrayGetLevel = get_level;
  t.cuMipmappedArrayDestroy = destroy_mipmapped;
  t.cuArrayGetSparseProperties = no_such_property<CUDA_ARRAY_SPARSE_PROPERTIES, CUarray>;
  t.cuMipmappedArrayGetSparseProperties = no_such_property<CUDA_ARRAY_SPARSE_PROPERTIES, CUmipmappedArray>;
  t.cuArrayGetMemoryRequirements = no_such_property<CUDA_ARRAY_MEMORY_REQUIREMENTS, CUarray, CUdevice>;
  t.cuMipmappedArrayGetMemoryRequirements =
      no_such_property<CUDA_ARRAY_MEMORY_REQUIREMENTS, CUmipmappedArray, CUdevice>;
}

}  // namespace outboard::device::cpu
