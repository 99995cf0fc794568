// Chapter texture, objects: their values are the device's own, because kernels read them. The program's
// handles stand in the descriptions, which are therefore answered here.
#include <bit>
#include <map>
#include <mutex>

#include "frontend/cuda/ends.hh"
#include "frontend/cuda/gate.hh"
#include "frontend/cuda/objects.hh"
#include "frontend/cuda/requests.hh"
#include "marshal/cuda/array_bodies.hh"

namespace outboard::frontend::cuda {
namespace {

using api::handle_kind;
using api::opcode;

/// Ids by value. The device may give a value again only after its object was destroyed.
class value_table {
 public:
  void insert(std::uint64_t value, std::uint64_t id) {
    const std::lock_guard lock(mutex_);
    ids_[value] = id;
  }
  std::uint64_t find(std::uint64_t value) {
    const std::lock_guard lock(mutex_);
    const auto found = ids_.find(value);
    return found == ids_.end() ? 0 : found->second;
  }
  std::uint64_t remove(std::uint64_t value) {
    const std::lock_guard lock(mutex_);
    const auto found = ids_.find(value);
    const std::uint64_t id = found == ids_.end() ? 0 : found->second;
    if (id) ids_.erase(found);
    return id;
  }

 private:
  std::mutex mutex_;
  std::map<std::uint64_t, std::uint64_t> ids_;
};

// Never destroyed: calls come from destructors after main too.
value_table& textures() {
  static auto* table = new value_table;
  return *table;
}
value_table& surfaces() {
  static auto* table = new value_table;
  return *table;
}

CUresult put_resource(const CUDA_RESOURCE_DESC& r, marshal::texture_body& body) {
  body.type = r.resType;
  body.resource_flags = r.flags;
  switch (r.resType) {
    case CU_RESOURCE_TYPE_ARRAY:
      body.place = value_of(r.res.array.hArray);
      return find_object<array_info>(r.res.array.hArray) ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
    case CU_RESOURCE_TYPE_MIPMAPPED_ARRAY:
      body.place = value_of(r.res.mipmap.hMipmappedArray);
      return find_object<mipmapped_array_info>(r.res.mipmap.hMipmappedArray) ? CUDA_SUCCESS
                                                                             : CUDA_ERROR_INVALID_VALUE;
    case CU_RESOURCE_TYPE_LINEAR:
      body.place = r.res.linear.devPtr, body.format = r.res.linear.format;
      body.channels = r.res.linear.numChannels, body.width = r.res.linear.sizeInBytes;
      return CUDA_SUCCESS;
    case CU_RESOURCE_TYPE_PITCH2D:
      body.place = r.res.pitch2D.devPtr, body.format = r.res.pitch2D.format;
      body.channels = r.res.pitch2D.numChannels, body.pitch = r.res.pitch2D.pitchInBytes;
      body.width = r.res.pitch2D.width, body.height = r.res.pitch2D.height;
      return CUDA_SUCCESS;
    default:
      return CUDA_ERROR_INVALID_VALUE;
  }
}

void put_sampling(const CUDA_TEXTURE_DESC& t, marshal::texture_body& body) {
  for (std::size_t i = 0; i < 3; ++i) body.address_modes[i] = t.addressMode[i];
  body.filter = t.filterMode, body.mipmap_filter = t.mipmapFilterMode;
  body.flags = t.flags, body.anisotropy = t.maxAnisotropy;
  const auto bits = [](float f) { return std::bit_cast<std::uint32_t>(f); };
  body.reals = {bits(t.mipmapLevelBias), bits(t.minMipmapLevelClamp), bits(t.maxMipmapLevelClamp)};
  for (std::size_t i = 0; i < 4; ++i) body.reals[3 + i] = bits(t.borderColor[i]);
}

void put_view(const CUDA_RESOURCE_VIEW_DESC& v, marshal::texture_body& body) {
  body.has_view = true;
  body.view_format = v.format;
  body.view_size = {v.width, v.height, v.depth};
  body.view_range = {v.firstMipmapLevel, v.lastMipmapLevel, v.firstLayer, v.lastLayer};
}

CUresult make(lane& own, opcode_for<marshal::texture_body, marshal::number_reply> code, handle_kind kind,
              marshal::texture_body& body, std::unique_ptr<texture_info> info, value_table& values,
              unsigned long long* out) {
  handle_table& table = process::instance().objects().handles(kind);
  info->context = own.context_handle();
  body.handle = table.reserve(std::move(info));
  if (!body.handle) return CUDA_ERROR_OUT_OF_MEMORY;
  typed_request r(code, own, body);
  marshal::number_reply made;
  const CUresult result = r.call(made);
  if (result != CUDA_SUCCESS) return table.release(body.handle), result;
  *out = static_cast<unsigned long long>(made.value);
  values.insert(*out, body.handle);
  return CUDA_SUCCESS;
}

CUresult destroy(opcode_for<marshal::handle_body> code, handle_kind kind, value_table& values,
                 std::uint64_t value) {
  lane& own = this_lane();
  process& p = process::instance();
  if (const CUresult refused = p.gate(own); refused != CUDA_SUCCESS) return refused;
  const std::uint64_t id = values.remove(value);
  const object* known = id ? p.objects().handles(kind).find(id) : nullptr;
  if (!known) return CUDA_SUCCESS;  // as a driver says of any value
  typed_request r(code, own, marshal::handle_body{id});
  r.in_context(known->context);
  const CUresult result = r.call();
  p.objects().handles(kind).release(id);
  return result;
}

template <class Out, class Get>
CUresult tell(Out* out, handle_kind kind, value_table& values, std::uint64_t value, Get&& get) {
  process& p = process::instance();
  if (const CUresult code = p.gate(this_lane()); code != CUDA_SUCCESS) return code;
  const std::uint64_t id = values.find(value);
  auto* info = static_cast<texture_info*>(id ? p.objects().handles(kind).find(id) : nullptr);
  if (!out || !info) return CUDA_ERROR_INVALID_VALUE;
  return get(*info);
}

}  // namespace

namespace ends {

CUresult cuTexObjectCreate(CUtexObject* pTexObject, const CUDA_RESOURCE_DESC* pResDesc,
                           const CUDA_TEXTURE_DESC* pTexDesc, const CUDA_RESOURCE_VIEW_DESC* pResViewDesc) {
  lane& own = this_lane();
  if (const CUresult code = gate<opcode::cuTexObjectCreate>(own); code != CUDA_SUCCESS) return code;
  if (!pTexObject || !pResDesc || !pTexDesc) return CUDA_ERROR_INVALID_VALUE;
  marshal::texture_body body;
  if (const CUresult code = put_resource(*pResDesc, body); code != CUDA_SUCCESS) return code;
  put_sampling(*pTexDesc, body);
  auto info = std::make_unique<texture_info>();
  info->resource = *pResDesc, info->sampling = *pTexDesc;
  if (pResViewDesc) put_view(*pResViewDesc, body), info->view = *pResViewDesc, info->has_view = true;
  return make(own, opcode::cuTexObjectCreate, handle_kind::texture_object, body, std::move(info), textures(),
              pTexObject);
}

CUresult cuTexObjectDestroy(CUtexObject texObject) {
  return destroy(opcode::cuTexObjectDestroy, handle_kind::texture_object, textures(), texObject);
}

CUresult cuTexObjectGetResourceDesc(CUDA_RESOURCE_DESC* pResDesc, CUtexObject texObject) {
  return tell(pResDesc, handle_kind::texture_object, textures(), texObject,
              [&](const texture_info& t) { return *pResDesc = t.resource, CUDA_SUCCESS; });
}

CUresult cuTexObjectGetTextureDesc(CUDA_TEXTURE_DESC* pTexDesc, CUtexObject texObject) {
  return tell(pTexDesc, handle_kind::texture_object, textures(), texObject,
              [&](const texture_info& t) { return *pTexDesc = t.sampling, CUDA_SUCCESS; });
}

CUresult cuTexObjectGetResourceViewDesc(CUDA_RESOURCE_VIEW_DESC* pResViewDesc, CUtexObject texObject) {
  return tell(pResViewDesc, handle_kind::texture_object, textures(), texObject, [&](const texture_info& t) {
    return *pResViewDesc = t.view, CUDA_SUCCESS;  // without one all zero, though the manual says an error
  });
}

CUresult cuSurfObjectCreate(CUsurfObject* pSurfObject, const CUDA_RESOURCE_DESC* pResDesc) {
  lane& own = this_lane();
  if (const CUresult code = gate<opcode::cuSurfObjectCreate>(own); code != CUDA_SUCCESS) return code;
  if (!pSurfObject || !pResDesc) return CUDA_ERROR_INVALID_VALUE;
  marshal::texture_body body;
  if (const CUresult code = put_resource(*pResDesc, body); code != CUDA_SUCCESS) return code;
  auto info = std::make_unique<texture_info>();
  info->resource = *pResDesc;
  return make(own, opcode::cuSurfObjectCreate, handle_kind::surface_object, body, std::move(info), surfaces(),
              pSurfObject);
}

CUresult cuSurfObjectDestroy(CUsurfObject surfObject) {
  return destroy(opcode::cuSurfObjectDestroy, handle_kind::surface_object, surfaces(), surfObject);
}

CUresult cuSurfObjectGetResourceDesc(CUDA_RESOURCE_DESC* pResDesc, CUsurfObject surfObject) {
  return tell(pResDesc, handle_kind::surface_object, surfaces(), surfObject,
              [&](const texture_info& t) { return *pResDesc = t.resource, CUDA_SUCCESS; });
}

}  // namespace ends
}  // namespace outboard::frontend::cuda
