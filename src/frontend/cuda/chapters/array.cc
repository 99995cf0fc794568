// Chapter memory, arrays: made on the server, described here. A level of a mipmapped array and a plane of an
// array are arrays of their own that die with what they are part of.
#include <algorithm>

#include "frontend/cuda/copying/boxes.hh"
#include "frontend/cuda/ends.hh"
#include "frontend/cuda/gate.hh"
#include "frontend/cuda/objects.hh"
#include "frontend/cuda/requests.hh"
#include "marshal/cuda/array_bodies.hh"

namespace outboard::frontend::cuda {
namespace {

using api::opcode;

/// The limits of the driver are its own to check; what is nothing at all needs no journey.
bool sound(const CUDA_ARRAY3D_DESCRIPTOR& d) {
  return d.Width != 0 && d.NumChannels >= 1 && d.NumChannels <= 4;
}

marshal::array_body body_of(std::uint64_t handle, const CUDA_ARRAY3D_DESCRIPTOR& d, unsigned levels) {
  return {handle,        d.Width, d.Height, d.Depth, static_cast<std::int32_t>(d.Format),
          d.NumChannels, d.Flags, levels};
}

/// Reserves a handle for `info`, asks the server to make the object, and gives the handle out.
template <class Body, class H, class Info, class Make>
CUresult make(lane& own, opcode_for<Body> code, H* out, std::unique_ptr<Info> info, Make&& body) {
  handle_table& table = process::instance().objects().handles(api::handle_trait<H>::kind);
  info->context = own.context_handle();
  const std::uint64_t handle = table.reserve(std::move(info));
  if (!handle) return CUDA_ERROR_OUT_OF_MEMORY;
  typed_request r(code, own, body(handle));
  const CUresult result = r.call();
  if (result != CUDA_SUCCESS) return table.release(handle), result;
  *out = reinterpret_cast<H>(handle);
  return CUDA_SUCCESS;
}

CUresult create(CUarray* out, const CUDA_ARRAY3D_DESCRIPTOR& about) {
  lane& own = this_lane();
  if (const CUresult code = gate<opcode::cuArray3DCreate_v2>(own); code != CUDA_SUCCESS) return code;
  if (!out || !sound(about)) return CUDA_ERROR_INVALID_VALUE;
  auto info = std::make_unique<array_info>();
  info->about = about;
  return make<marshal::array_body>(own, opcode::cuArray3DCreate_v2, out, std::move(info),
                                   [&](std::uint64_t handle) { return body_of(handle, about, 0); });
}

/// Null pointers first, as CUDA_ERROR_INVALID_VALUE, then handles.
template <class Out, class H, class Info>
CUresult described(Out* out, H handle, Info*& info) {
  if (const CUresult code = process::instance().gate(this_lane()); code != CUDA_SUCCESS) return code;
  if (!out) return CUDA_ERROR_INVALID_VALUE;
  info = find_object<Info>(handle);
  return info ? CUDA_SUCCESS : CUDA_ERROR_INVALID_HANDLE;
}

template <class Descriptor>
CUresult describe(Descriptor* out, CUarray array) {
  array_info* info = nullptr;
  if (const CUresult code = described(out, array, info); code != CUDA_SUCCESS) return code;
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
void forget_parts(const std::map<unsigned, H>& parts) {
  for (const auto& [index, handle] : parts)
    process::instance().objects().handles(api::handle_kind::array).release(handle);
}

template <class H, class Info, class Parts>
CUresult destroy(opcode_for<marshal::handle_body> code, H handle, Parts&& parts) {
  lane& own = this_lane();
  if (const CUresult refused = process::instance().gate(own); refused != CUDA_SUCCESS) return refused;
  Info* info = find_object<Info>(handle);
  if (!info) return CUDA_ERROR_INVALID_HANDLE;
  typed_request r(code, own, marshal::handle_body{value_of(handle)});
  r.in_context(info->context);
  const CUresult result = r.call();
  if (result != CUDA_SUCCESS) return result;
  forget_parts(parts(*info));
  process::instance().objects().handles(api::handle_trait<H>::kind).release(value_of(handle));
  return CUDA_SUCCESS;
}

CUDA_ARRAY3D_DESCRIPTOR level_of(CUDA_ARRAY3D_DESCRIPTOR d, unsigned level) {
  const auto shrink = [&](std::size_t n) { return n ? std::max<std::size_t>(n >> level, 1) : 0; };
  d.Width = shrink(d.Width), d.Height = shrink(d.Height);
  if (!(d.Flags & (CUDA_ARRAY3D_LAYERED | CUDA_ARRAY3D_CUBEMAP))) d.Depth = shrink(d.Depth);
  return d;
}

/// The array that is part `index` of its parent: the same handle every time.
CUresult part(opcode_for<marshal::subarray_body> code, CUarray* out, std::uint64_t parent,
              const CUDA_ARRAY3D_DESCRIPTOR& about, unsigned index, std::mutex& mutex,
              std::map<unsigned, std::uint64_t>& known) {
  const std::lock_guard lock(mutex);
  if (const auto found = known.find(index); found != known.end())
    return *out = reinterpret_cast<CUarray>(found->second), CUDA_SUCCESS;
  auto info = std::make_unique<array_info>();
  info->about = about;
  info->parent = parent;
  const CUresult result =
      make<marshal::subarray_body>(this_lane(), code, out, std::move(info), [&](std::uint64_t handle) {
        return marshal::subarray_body{parent, handle, index};
      });
  if (result == CUDA_SUCCESS) known[index] = value_of(*out);
  return result;
}

CUresult sparse(opcode_for<marshal::handle_body, marshal::sparse_reply> code,
                CUDA_ARRAY_SPARSE_PROPERTIES* out, std::uint64_t handle) {
  typed_request r(code, this_lane(), marshal::handle_body{handle});
  marshal::sparse_reply reply;
  if (const CUresult result = r.call(reply); result != CUDA_SUCCESS) return result;
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

/// A missing description is found after what every call checks first.
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
  return describe(pArrayDescriptor, hArray);
}
CUresult cuArrayGetDescriptor_v2(CUDA_ARRAY_DESCRIPTOR* pArrayDescriptor, CUarray hArray) {
  return describe(pArrayDescriptor, hArray);
}
CUresult cuArray3DGetDescriptor(CUDA_ARRAY3D_DESCRIPTOR_v1* pArrayDescriptor, CUarray hArray) {
  return describe(pArrayDescriptor, hArray);
}
CUresult cuArray3DGetDescriptor_v2(CUDA_ARRAY3D_DESCRIPTOR* pArrayDescriptor, CUarray hArray) {
  return describe(pArrayDescriptor, hArray);
}

CUresult cuArrayDestroy(CUarray hArray) {
  const array_info* info = find_object<array_info>(hArray);
  // It dies with what it is part of; the driver lets it pass, too.
  if (info && info->parent) return process::instance().gate(this_lane());
  return destroy<CUarray, array_info>(
      opcode::cuArrayDestroy, hArray, [](array_info & a) -> auto& { return a.planes; });
}

CUresult cuArrayGetPlane(CUarray* pPlaneArray, CUarray hArray, unsigned planeIdx) {
  array_info* info = nullptr;
  if (const CUresult code = described(pPlaneArray, hArray, info); code != CUDA_SUCCESS) return code;
  CUarray made = nullptr;
  const CUresult code = part(opcode::cuArrayGetPlane, &made, value_of(hArray), info->about, planeIdx,
                             info->mutex, info->planes);
  if (code == CUDA_SUCCESS) *pPlaneArray = made;
  return code;
}

CUresult cuArrayGetSparseProperties(CUDA_ARRAY_SPARSE_PROPERTIES* sparseProperties, CUarray array) {
  array_info* info = nullptr;
  const CUresult code = described(sparseProperties, array, info);
  return code == CUDA_SUCCESS ? sparse(opcode::cuArrayGetSparseProperties, sparseProperties, value_of(array))
                              : code;
}

CUresult cuMipmappedArrayCreate(CUmipmappedArray* pHandle, const CUDA_ARRAY3D_DESCRIPTOR* pMipmappedArrayDesc,
                                unsigned numMipmapLevels) {
  lane& own = this_lane();
  if (const CUresult code = gate<opcode::cuMipmappedArrayCreate>(own); code != CUDA_SUCCESS) return code;
  if (!pHandle || !pMipmappedArrayDesc || !sound(*pMipmappedArrayDesc)) return CUDA_ERROR_INVALID_VALUE;
  const CUDA_ARRAY3D_DESCRIPTOR& about = *pMipmappedArrayDesc;
  const std::size_t longest = std::max({about.Width, about.Height, about.Depth, std::size_t{1}});
  auto info = std::make_unique<mipmapped_array_info>();
  info->about = about;
  // More levels than the size allows are cut (manual: clamped to 1 + floor(log2(largest))).
  info->levels =
      std::min(std::max(numMipmapLevels, 1u), static_cast<unsigned>(64 - __builtin_clzll(longest)));
  const unsigned levels = info->levels;
  return make<marshal::array_body>(own, opcode::cuMipmappedArrayCreate, pHandle, std::move(info),
                                   [&](std::uint64_t handle) { return body_of(handle, about, levels); });
}

CUresult cuMipmappedArrayGetLevel(CUarray* pLevelArray, CUmipmappedArray hMipmappedArray, unsigned level) {
  mipmapped_array_info* info = nullptr;
  if (const CUresult code = described(pLevelArray, hMipmappedArray, info); code != CUDA_SUCCESS) return code;
  if (level >= info->levels) return CUDA_ERROR_INVALID_VALUE;
  CUarray made = nullptr;
  const CUresult code = part(opcode::cuMipmappedArrayGetLevel, &made, value_of(hMipmappedArray),
                             level_of(info->about, level), level, info->mutex, info->level_arrays);
  if (code == CUDA_SUCCESS) *pLevelArray = made;
  return code;
}

CUresult cuMipmappedArrayDestroy(CUmipmappedArray hMipmappedArray) {
  return destroy<CUmipmappedArray, mipmapped_array_info>(
      opcode::cuMipmappedArrayDestroy, hMipmappedArray,
      [](mipmapped_array_info & a) -> auto& { return a.level_arrays; });
}

CUresult cuMipmappedArrayGetSparseProperties(CUDA_ARRAY_SPARSE_PROPERTIES* sparseProperties,
                                             CUmipmappedArray mipmap) {
  mipmapped_array_info* info = nullptr;
  const CUresult code = described(sparseProperties, mipmap, info);
  return code == CUDA_SUCCESS
             ? sparse(opcode::cuMipmappedArrayGetSparseProperties, sparseProperties, value_of(mipmap))
             : code;
}

}  // namespace ends
}  // namespace outboard::frontend::cuda
