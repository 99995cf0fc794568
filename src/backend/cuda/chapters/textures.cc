// Handlers of texture and surface objects. Kernels read the device's own values, so those go to the program
// as they are; requests name the objects by ids like any other.
#include <bit>
#include <string>

#include "backend/cuda/driver_call.hh"
#include "backend/cuda/ends.hh"
#include "backend/cuda/session.hh"
#include "marshal/cuda/array_bodies.hh"

namespace outboard::backend {
namespace {

CUresult resource_of(call& c, const marshal::texture_body& body, CUDA_RESOURCE_DESC& out) {
  out.resType = static_cast<CUresourcetype>(body.type);
  out.flags = body.resource_flags;
  const auto format = static_cast<CUarray_format>(body.format);
  switch (out.resType) {
    case CU_RESOURCE_TYPE_ARRAY:
      return c.objects().resolve(body.place, out.res.array.hArray);
    case CU_RESOURCE_TYPE_MIPMAPPED_ARRAY:
      return c.objects().resolve(body.place, out.res.mipmap.hMipmappedArray);
    case CU_RESOURCE_TYPE_LINEAR:
      out.res.linear.devPtr = body.place, out.res.linear.format = format;
      out.res.linear.numChannels = body.channels, out.res.linear.sizeInBytes = body.width;
      return CUDA_SUCCESS;
    case CU_RESOURCE_TYPE_PITCH2D:
      out.res.pitch2D.devPtr = body.place, out.res.pitch2D.format = format;
      out.res.pitch2D.numChannels = body.channels, out.res.pitch2D.pitchInBytes = body.pitch;
      out.res.pitch2D.width = body.width, out.res.pitch2D.height = body.height;
      return CUDA_SUCCESS;
    default:
      return CUDA_ERROR_INVALID_VALUE;
  }
}

CUDA_TEXTURE_DESC sampling_of(const marshal::texture_body& body) {
  CUDA_TEXTURE_DESC t{};
  for (std::size_t i = 0; i < 3; ++i) t.addressMode[i] = static_cast<CUaddress_mode>(body.address_modes[i]);
  t.filterMode = static_cast<CUfilter_mode>(body.filter);
  t.mipmapFilterMode = static_cast<CUfilter_mode>(body.mipmap_filter);
  t.flags = body.flags, t.maxAnisotropy = body.anisotropy;
  const auto real = [&](std::size_t i) { return std::bit_cast<float>(body.reals[i]); };
  t.mipmapLevelBias = real(0), t.minMipmapLevelClamp = real(1), t.maxMipmapLevelClamp = real(2);
  for (std::size_t i = 0; i < 4; ++i) t.borderColor[i] = real(3 + i);
  return t;
}

CUDA_RESOURCE_VIEW_DESC view_of(const marshal::texture_body& body) {
  CUDA_RESOURCE_VIEW_DESC v{};
  v.format = static_cast<CUresourceViewFormat>(body.view_format);
  v.width = body.view_size[0], v.height = body.view_size[1], v.depth = body.view_size[2];
  v.firstMipmapLevel = body.view_range[0], v.lastMipmapLevel = body.view_range[1];
  v.firstLayer = body.view_range[2], v.lastLayer = body.view_range[3];
  return v;
}

/// Enters the object with a record that says what its value must be again. Where it is not, kernels that hold
/// the old value would read something else: the session cannot go on there.
outcome enter(call& c, const marshal::texture_body& body, CUresult code, std::uint64_t made,
              CUresult (*undo)(unsigned long long)) {
  if (code != CUDA_SUCCESS) return outcome::answer(code);
  if (body.value != 0 && body.value != made) {
    c.core.tell_failure("a texture or surface object has another value on this device (" +
                        std::to_string(made) + ", it was " + std::to_string(body.value) + ")");
    call_driver(undo, made);
    return outcome::answer(CUDA_ERROR_NOT_SUPPORTED);
  }
  marshal::texture_body kept = body;
  kept.value = made;
  record made_by = c.as_record();
  made_by.payload.clear();
  wire::writer w(made_by.payload);
  marshal::put_body(w, kept);
  if (!c.objects().create(body.handle, reinterpret_cast<void*>(made), std::move(made_by)))
    return outcome::malformed();
  marshal::put_body(c.reply, marshal::number_reply{static_cast<std::int64_t>(made)});
  return outcome::answer(CUDA_SUCCESS);
}

outcome destroy(call& c, const marshal::handle_body& body, api::handle_kind kind,
                CUresult (*entry)(unsigned long long)) {
  void* native = nullptr;
  if (const CUresult code = c.objects().resolve(kind, body.handle, native); code != CUDA_SUCCESS)
    return outcome::answer(code);
  c.objects().erase(body.handle);
  c.give_up_turn();
  return outcome::answer(call_driver(entry, reinterpret_cast<std::uint64_t>(native)));
}

}  // namespace

outcome ends::cuTexObjectCreate(call& c, const marshal::texture_body& body) {
  if (c.refused != CUDA_SUCCESS) return outcome::answer(c.refused);
  CUDA_RESOURCE_DESC resource{};
  CUresult code = resource_of(c, body, resource);
  const CUDA_TEXTURE_DESC sampling = sampling_of(body);
  const CUDA_RESOURCE_VIEW_DESC view = view_of(body);
  CUtexObject made = 0;
  if (code == CUDA_SUCCESS) {
    code = call_driver(c.driver().cuTexObjectCreate, &made, &resource, &sampling,
                       body.has_view ? &view : nullptr);
  }
  return enter(c, body, code, made, c.driver().cuTexObjectDestroy);
}

outcome ends::cuSurfObjectCreate(call& c, const marshal::texture_body& body) {
  if (c.refused != CUDA_SUCCESS) return outcome::answer(c.refused);
  CUDA_RESOURCE_DESC resource{};
  CUresult code = resource_of(c, body, resource);
  CUsurfObject made = 0;
  if (code == CUDA_SUCCESS) code = call_driver(c.driver().cuSurfObjectCreate, &made, &resource);
  return enter(c, body, code, made, c.driver().cuSurfObjectDestroy);
}

outcome ends::cuTexObjectDestroy(call& c, const marshal::handle_body& body) {
  return destroy(c, body, api::handle_kind::texture_object, c.driver().cuTexObjectDestroy);
}
outcome ends::cuSurfObjectDestroy(call& c, const marshal::handle_body& body) {
  return destroy(c, body, api::handle_kind::surface_object, c.driver().cuSurfObjectDestroy);
}

}  // namespace outboard::backend
