#include "objects.hh"

#include <cstring>

#include "cuda.hh"

namespace conformance {
namespace {

struct extent {
  std::size_t width, height, depth;
};

/// The side of an image of one level; depth counts layers or faces where there are some.
extent extent_of(const texture_setup& s, unsigned level) {
  const std::size_t side = std::size_t{16} >> level;
  if (s.geometry == "1d") return {std::size_t{256} >> level, 0, 0};
  if (s.geometry == "a1d") return {std::size_t{64} >> level, 0, 4};
  if (s.geometry == "3d") return {std::size_t{8} >> level, std::size_t{8} >> level, std::size_t{4} >> level};
  if (s.geometry == "a2d") return {side, side, 4};
  if (s.geometry == "cube") return {side, side, 6};
  return {side, side, 0};
}

CUarray_format format_of(const std::string& channel) {
  if (channel == "f32") return CU_AD_FORMAT_FLOAT;
  if (channel == "s32") return CU_AD_FORMAT_SIGNED_INT32;
  if (channel == "u32") return CU_AD_FORMAT_UNSIGNED_INT32;
  return channel == "u16" ? CU_AD_FORMAT_UNSIGNED_INT16 : CU_AD_FORMAT_UNSIGNED_INT8;
}

std::size_t channel_bytes(const std::string& channel) {
  return channel == "u8" ? 1 : channel == "u16" ? 2 : 4;
}

/// Floats in 0..1 that are exact, integers of every size.
std::vector<std::uint8_t> pattern(const texture_setup& s, unsigned level) {
  const extent e = extent_of(s, level);
  const std::size_t values =
      e.width * std::max<std::size_t>(e.height, 1) * std::max<std::size_t>(e.depth, 1) * s.channels;
  const std::size_t bytes = channel_bytes(s.channel);
  std::vector<std::uint8_t> out(values * bytes);
  for (std::size_t n = 0; n < values; ++n) {
    const auto hash = static_cast<std::uint32_t>((n + level * 977) * 2654435761u);
    const float real = static_cast<float>(hash >> 24) / 256.0f;
    std::memcpy(out.data() + n * bytes, s.channel == "f32" ? static_cast<const void*>(&real) : &hash, bytes);
  }
  return out;
}

}  // namespace

bool image_object::step(CUresult code, const char* what) {
  if (code != CUDA_SUCCESS && failure_.empty()) failure_ = std::string(what) + ": " + cuda().error_name(code);
  return failure_.empty();
}

bool image_object::copy(CUarray array, unsigned level, void* host, bool to_device) const {
  const extent e = extent_of(setup_, level);
  CUDA_MEMCPY3D c{};
  const std::size_t row = e.width * setup_.channels * channel_bytes(setup_.channel);
  c.WidthInBytes = row, c.Height = std::max<std::size_t>(e.height, 1),
  c.Depth = std::max<std::size_t>(e.depth, 1);
  if (to_device) {
    c.srcMemoryType = CU_MEMORYTYPE_HOST, c.srcHost = host, c.srcPitch = row, c.srcHeight = c.Height;
    c.dstMemoryType = CU_MEMORYTYPE_ARRAY, c.dstArray = array;
  } else {
    c.dstMemoryType = CU_MEMORYTYPE_HOST, c.dstHost = host, c.dstPitch = row, c.dstHeight = c.Height;
    c.srcMemoryType = CU_MEMORYTYPE_ARRAY, c.srcArray = array;
  }
  return cuda().cuMemcpy3D(&c) == CUDA_SUCCESS;
}

void image_object::fill(CUarray array, unsigned level) {
  auto bytes = pattern(setup_, level);
  if (!copy(array, level, bytes.data(), true) && failure_.empty())
    failure_ = "cuMemcpy3D to the array failed";
}

image_object::image_object(const texture_setup& setup) : setup_(setup) {
  if (setup.geometry.empty()) return;
  const driver& d = cuda();
  const extent e = extent_of(setup, 0);
  CUDA_ARRAY3D_DESCRIPTOR a{};
  a.Width = e.width, a.Height = e.height, a.Depth = e.depth;
  a.Format = format_of(setup.channel), a.NumChannels = setup.channels;
  if (setup.geometry[0] == 'a') a.Flags |= CUDA_ARRAY3D_LAYERED;
  if (setup.geometry == "cube") a.Flags |= CUDA_ARRAY3D_CUBEMAP;
  if (setup.surface) a.Flags |= CUDA_ARRAY3D_SURFACE_LDST;
  CUDA_RESOURCE_DESC resource{};
  if (setup.mipmaps > 1) {
    if (!step(d.cuMipmappedArrayCreate(&mipmaps_, &a, setup.mipmaps), "cuMipmappedArrayCreate")) return;
    for (unsigned level = 0; level < setup.mipmaps; ++level) {
      CUarray one = nullptr;
      if (!step(d.cuMipmappedArrayGetLevel(&one, mipmaps_, level), "cuMipmappedArrayGetLevel")) return;
      fill(one, level);
    }
    resource.resType = CU_RESOURCE_TYPE_MIPMAPPED_ARRAY;
    resource.res.mipmap.hMipmappedArray = mipmaps_;
  } else {
    if (!step(d.cuArray3DCreate(&array_, &a), "cuArray3DCreate")) return;
    fill(array_, 0);
    resource.resType = CU_RESOURCE_TYPE_ARRAY;
    resource.res.array.hArray = array_;
  }
  if (!failure_.empty()) return;
  if (setup.surface) {
    step(d.cuSurfObjectCreate(&handle_, &resource), "cuSurfObjectCreate");
    return;
  }
  CUDA_TEXTURE_DESC t{};
  for (auto& mode : t.addressMode) mode = CU_TR_ADDRESS_MODE_CLAMP;
  t.filterMode = setup.linear ? CU_TR_FILTER_MODE_LINEAR : CU_TR_FILTER_MODE_POINT;
  t.mipmapFilterMode = CU_TR_FILTER_MODE_POINT;
  t.maxMipmapLevelClamp = static_cast<float>(setup.mipmaps - 1);
  if (setup.normalized) t.flags |= CU_TRSF_NORMALIZED_COORDINATES;
  if (setup.channel != "f32") t.flags |= CU_TRSF_READ_AS_INTEGER;
  step(d.cuTexObjectCreate(&handle_, &resource, &t, nullptr), "cuTexObjectCreate");
}

image_object::~image_object() {
  const driver& d = cuda();
  if (handle_ != 0) setup_.surface ? d.cuSurfObjectDestroy(handle_) : d.cuTexObjectDestroy(handle_);
  if (mipmaps_) d.cuMipmappedArrayDestroy(mipmaps_);
  if (array_) d.cuArrayDestroy(array_);
}

bool image_object::read(std::vector<std::uint8_t>& out) const {
  auto bytes = pattern(setup_, 0);
  if (!copy(array_, 0, bytes.data(), false)) return false;
  out.insert(out.end(), bytes.begin(), bytes.end());
  return true;
}

}  // namespace conformance
