// Chapter memory, arrays: made on the server, described here. A level of a mipmapped array and a plane of an
// array are arrays of their own that die with what they are part of.
#include <algorithm>

#include "frontend/cuda/copying/boxes.hh"
#include "frontend/cuda/ends.hh"
#include "frontend/cuda/objects.hh"
#include "frontend/cuda/requests.hh"
#include "marshal/cuda/array_bodies.hh"

namespace outboard::frontend::cuda {
namespace {

using api::opcode;

/// The driver checks its own limits; only what can be no array at all is refused here.
bool sound(const CUDA_ARRAY3D_DESCRIPTOR& d) {
  return d.Width != 0 && d.NumChannels >= 1 && d.NumChannels <= 4;
}

marshal::array_body body_of(std::uint64_t handle, const CUDA_ARRAY3D_DESCRIPTOR& d, unsigned levels) {
  return {.handle = handle,
          .width = d.Width,
          .height = d.Height,
          .depth = d.Depth,
          .format = static_cast<std::int32_t>(d.Format),
          .channels = d.NumChannels,
          .flags = d.Flags,
          .levels = levels};
}

/// Reserves a handle for `info`, asks the server to make the object, and gives the handle out.
template <class Line, class H, class Info, class Body>
CUresult make(lane& own, Line what, H* out, std::unique_ptr<Info> info, Body&& body) {
  handle_table& table = own.state().handles[api::handle_trait<H>::kind];
  info->context = own.context_handle();
  const std::uint64_t handle = table.reserve(std::move(info));
  if (!handle) return CUDA_ERROR_OUT_OF_MEMORY;
  const CUresult result = call(what, own, body(handle));
  if (result != CUDA_SUCCESS) return table.release(handle), result;
  *out = reinterpret_cast<H>(handle);
  return CUDA_SUCCESS;
}

CUresult create(CUarray* out, const CUDA_ARRAY3D_DESCRIPTOR& about) {
  lane& own = this_lane();
  if (!out || !sound(about)) return CUDA_ERROR_INVALID_VALUE;
  auto info = std::make_unique<array_info>();
  info->about = about;
  return make(own, typed<opcode::cuArray3DCreate_v2>, out, std::move(info),
              [&](std::uint64_t handle) { return body_of(handle, about, 0); });
}

/// Null pointers first, as CUDA_ERROR_INVALID_VALUE, then handles.
template <class Out, class H, class Info>
CUresult described(const lane& own, Out* out, H handle, Info*& info) {
  if (!out) return CUDA_ERROR_INVALID_VALUE;
  info = find_object<Info>(own, handle);
  return info ? CUDA_SUCCESS : CUDA_ERROR_INVALID_HANDLE;
}

template <class Descriptor>
CUresult describe(const lane& own, Descriptor* out, CUarray array) {
  array_info* info = nullptr;
  if (const CUresult code = described(own, out, array, info); code != CUDA_SUCCESS) return code;
  *out = {};
  out->Width = static_cast<decltype(out->Width)>(info->about.Width);
  out->Height = static_cast<decltype(out->Height)>(info->about.Height);
  out->Format = info->about.Format;
  out->NumChannels = info->about.NumChannels;
  if constexpr (requires { out->Depth; }) {
    out->Depth = static_cast<decltype(out->Depth)>(info->about.Depth);
    out->Flags = info->about.Flags;
  }
  return CUDA_SUCCESS;
}

template <class H>
void forget_parts(const lane& own, const std::map<unsigned, H>& parts) {
  for (const auto& [index, handle] : parts) own.state().handles[api::handle_kind::array].release(handle);
}

template <class H, class Info, class Parts>
CUresult destroy(like<opcode::cuArrayDestroy> what, H handle, Parts&& parts) {
  lane& own = this_lane();
  Info* info = find_object<Info>(own, handle);
  if (!info) return CUDA_ERROR_INVALID_HANDLE;
  const CUresult result = call(what, {own, info->context}, marshal::handle_body{.handle = value_of(handle)});
  if (result != CUDA_SUCCESS) return result;
  forget_parts(own, parts(*info));
  own.state().handles[api::handle_trait<H>::kind].release(value_of(handle));
  return CUDA_SUCCESS;
}

CUDA_ARRAY3D_DESCRIPTOR level_of(CUDA_ARRAY3D_DESCRIPTOR d, unsigned level) {
  const auto shrink = [&](std::size_t n) { return n ? std::max<std::size_t>(n >> level, 1) : 0; };
  d.Width = shrink(d.Width), d.Height = shrink(d.Height);
  if (!(d.Flags & (CUDA_ARRAY3D_LAYERED | CUDA_ARRAY3D_CUBEMAP))) d.Depth = shrink(d.Depth);
  return d;
}

/// The array that is part `index` of its parent: the same handle every time.
CUresult part(lane& own, like<opcode::cuArrayGetPlane> what, CUarray* out, std::uint64_t parent,
              const CUDA_ARRAY3D_DESCRIPTOR& about, unsigned index, std::mutex& mutex,
              std::map<unsigned, std::uint64_t>& known) {
  const std::lock_guard lock(mutex);
  if (const auto found = known.find(index); found != known.end())
    return *out = reinterpret_cast<CUarray>(found->second), CUDA_SUCCESS;
  auto info = std::make_unique<array_info>();
  info->about = about;
  info->parent = parent;
  const CUresult result = make(own, what, out, std::move(info), [&](std::uint64_t handle) {
    return marshal::subarray_body{.parent = parent, .handle = handle, .index = index};
  });
  if (result == CUDA_SUCCESS) known[index] = value_of(*out);
  return result;
}

CUresult sparse(lane& own, like<opcode::cuArrayGetSparseProperties> what, CUDA_ARRAY_SPARSE_PROPERTIES* out,
                std::uint64_t handle) {
  marshal::sparse_reply reply;
  if (const CUresult result = call(what, own, marshal::handle_body{.handle = handle}, reply);
      result != CUDA_SUCCESS)
    return result;
  *out = {};
  out->tileExtent = {reply.tile[0], reply.tile[1], reply.tile[2]};
  out->miptailFirstLevel = reply.tail_level, out->miptailSize = reply.tail_size, out->flags = reply.flags;
  return CUDA_SUCCESS;
}

template <class D>
CUDA_ARRAY3D_DESCRIPTOR widened(const D& d) {
  CUDA_ARRAY3D_DESCRIPTOR about{};
  about.Width = d.Width, about.Height = d.Height;
  about.Format = d.Format, about.NumChannels = d.NumChannels;
  if constexpr (requires { d.Depth; }) about.Depth = d.Depth, about.Flags = d.Flags;
  return about;
}

/// A missing description is reported after what every call checks first.
template <class D>
CUresult create_from(CUarray* out, const D* about) {
  return create(about ? out : nullptr, about ? widened(*about) : CUDA_ARRAY3D_DESCRIPTOR{});
}

}  // namespace

namespace ends {

CUresult cuArrayCreate(CUarray* pHandle, const CUDA_ARRAY_DESCRIPTOR_v1* pAllocateArray) {
  return create_from(pHandle, pAllocateArray);
}
CUresult cuArrayCreate_v2(CUarray* pHandle, const CUDA_ARRAY_DESCRIPTOR* pAllocateArray) {
  return create_from(pHandle, pAllocateArray);
}
CUresult cuArray3DCreate(CUarray* pHandle, const CUDA_ARRAY3D_DESCRIPTOR_v1* pAllocateArray) {
  return create_from(pHandle, pAllocateArray);
}
CUresult cuArray3DCreate_v2(CUarray* pHandle, const CUDA_ARRAY3D_DESCRIPTOR* pAllocateArray) {
  return create_from(pHandle, pAllocateArray);
}

CUresult cuArrayGetDescriptor(CUDA_ARRAY_DESCRIPTOR_v1* pArrayDescriptor, CUarray hArray) {
  lane& own = this_lane();
  return describe(own, pArrayDescriptor, hArray);
}
CUresult cuArrayGetDescriptor_v2(CUDA_ARRAY_DESCRIPTOR* pArrayDescriptor, CUarray hArray) {
  lane& own = this_lane();
  return describe(own, pArrayDescriptor, hArray);
}
CUresult cuArray3DGetDescriptor(CUDA_ARRAY3D_DESCRIPTOR_v1* pArrayDescriptor, CUarray hArray) {
  lane& own = this_lane();
  return describe(own, pArrayDescriptor, hArray);
}
CUresult cuArray3DGetDescriptor_v2(CUDA_ARRAY3D_DESCRIPTOR* pArrayDescriptor, CUarray hArray) {
  lane& own = this_lane();
  return describe(own, pArrayDescriptor, hArray);
}

CUresult cuArrayDestroy(CUarray hArray) {
  lane& own = this_lane();
  const array_info* info = find_object<array_info>(own, hArray);
  // It dies with what it is part of; the driver reports success, too.
  if (info && info->parent) return CUDA_SUCCESS;
  return destroy<CUarray, array_info>(
      typed<opcode::cuArrayDestroy>, hArray, [](array_info & a) -> auto& { return a.planes; });
}

CUresult cuArrayGetPlane(CUarray* pPlaneArray, CUarray hArray, unsigned planeIdx) {
  lane& own = this_lane();
  array_info* info = nullptr;
  if (const CUresult code = described(own, pPlaneArray, hArray, info); code != CUDA_SUCCESS) return code;
  CUarray made = nullptr;
  const CUresult code = part(own, typed<opcode::cuArrayGetPlane>, &made, value_of(hArray), info->about,
                             planeIdx, info->mutex, info->planes);
  if (code == CUDA_SUCCESS) *pPlaneArray = made;
  return code;
}

CUresult cuArrayGetSparseProperties(CUDA_ARRAY_SPARSE_PROPERTIES* sparseProperties, CUarray array) {
  lane& own = this_lane();
  array_info* info = nullptr;
  const CUresult code = described(own, sparseProperties, array, info);
  return code == CUDA_SUCCESS
             ? sparse(own, typed<opcode::cuArrayGetSparseProperties>, sparseProperties, value_of(array))
             : code;
}

CUresult cuMipmappedArrayCreate(CUmipmappedArray* pHandle, const CUDA_ARRAY3D_DESCRIPTOR* pMipmappedArrayDesc,
                                unsigned numMipmapLevels) {
  lane& own = this_lane();
  if (!pHandle || !pMipmappedArrayDesc || !sound(*pMipmappedArrayDesc)) return CUDA_ERROR_INVALID_VALUE;
  const CUDA_ARRAY3D_DESCRIPTOR& about = *pMipmappedArrayDesc;
  const std::size_t longest = std::max({about.Width, about.Height, about.Depth, std::size_t{1}});
  auto info = std::make_unique<mipmapped_array_info>();
  info->about = about;
  // More levels than the size allows are cut (manual: clamped to 1 + floor(log2(largest))).
  info->levels =
      std::min(std::max(numMipmapLevels, 1u), static_cast<unsigned>(64 - __builtin_clzll(longest)));
  const unsigned levels = info->levels;
  return make(own, typed<opcode::cuMipmappedArrayCreate>, pHandle, std::move(info),
              [&](std::uint64_t handle) { return body_of(handle, about, levels); });
}

CUresult cuMipmappedArrayGetLevel(CUarray* pLevelArray, CUmipmappedArray hMipmappedArray, unsigned level) {
  lane& own = this_lane();
  mipmapped_array_info* info = nullptr;
  if (const CUresult code = described(own, pLevelArray, hMipmappedArray, info); code != CUDA_SUCCESS)
    return code;
  if (level >= info->levels) return CUDA_ERROR_INVALID_VALUE;
  CUarray made = nullptr;
  const CUresult code = part(own, typed<opcode::cuMipmappedArrayGetLevel>, &made, value_of(hMipmappedArray),
                             level_of(info->about, level), level, info->mutex, info->level_arrays);
  if (code == CUDA_SUCCESS) *pLevelArray = made;
  return code;
}

CUresult cuMipmappedArrayDestroy(CUmipmappedArray hMipmappedArray) {
  return destroy<CUmipmappedArray, mipmapped_array_info>(
      typed<opcode::cuMipmappedArrayDestroy>, hMipmappedArray,
      [](mipmapped_array_info & a) -> auto& { return a.level_arrays; });
}

CUresult cuMipmappedArrayGetSparseProperties(CUDA_ARRAY_SPARSE_PROPERTIES* sparseProperties,
                                             CUmipmappedArray mipmap) {
  lane& own = this_lane();
  mipmapped_array_info* info = nullptr;
  const CUresult code = described(own, sparseProperties, mipmap, info);
  return code == CUDA_SUCCESS ? sparse(own, typed<opcode::cuMipmappedArrayGetSparseProperties>,
                                       sparseProperties, value_of(mipmap))
                              : code;
}

}  // namespace ends
}  // namespace outboard::frontend::cuda
