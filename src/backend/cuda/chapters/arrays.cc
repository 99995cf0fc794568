// Handlers of arrays. A mipmapped array keeps the ids of its levels, an array those of its planes: they die
// with it.
#include "backend/cuda/arrays.hh"

#include "backend/cuda/driver_call.hh"
#include "backend/cuda/ends.hh"
#include "backend/cuda/memory/with_room.hh"
#include "backend/cuda/session.hh"
#include "marshal/cuda/array_bodies.hh"

namespace outboard::backend {
namespace {

using derived_ids = std::vector<std::uint64_t>;

/// Bytes that the array holds at least: what the driver adds for its layout is not known.
std::uint64_t least_bytes(const CUDA_ARRAY3D_DESCRIPTOR& d, std::uint32_t levels) {
  const std::uint64_t channels = std::max(d.NumChannels, 1u);
  const bool wide = d.Format == CU_AD_FORMAT_FLOAT || d.Format == CU_AD_FORMAT_UNSIGNED_INT32 ||
                    d.Format == CU_AD_FORMAT_SIGNED_INT32;
  const bool half = d.Format == CU_AD_FORMAT_HALF || d.Format == CU_AD_FORMAT_UNSIGNED_INT16 ||
                    d.Format == CU_AD_FORMAT_SIGNED_INT16;
  const bool layers = d.Flags & (CUDA_ARRAY3D_LAYERED | CUDA_ARRAY3D_CUBEMAP);
  if (d.Flags & CUDA_ARRAY3D_SPARSE) return 0;  // what is mapped into it counts
  std::uint64_t all = 0;
  for (std::uint32_t level = 0; level < std::max(levels, 1u) && level < 64; ++level) {
    const auto at_level = [&](std::uint64_t n) { return std::max<std::uint64_t>(n >> level, 1); };
    all += at_level(d.Width) * at_level(d.Height) * (layers ? d.Depth : at_level(d.Depth));
  }
  return all * channels * (wide ? 4 : half ? 2 : 1);
}

template <class H>
outcome keep(call& c, const marshal::array_body& body, CUresult code, H native, std::uint64_t bytes,
             CUdevice device) {
  if (code != CUDA_SUCCESS) return outcome::answer(code);
  if (!c.objects().create(body.handle, native, c.as_record(), std::make_shared<derived_ids>()))
    return outcome::malformed();
  c.session.memory().array_made(body.handle, bytes, device, c.header.context);
  return outcome::answer(CUDA_SUCCESS);
}

outcome make(call& c, const marshal::array_body& body, bool mipmapped) {
  if (c.refused != CUDA_SUCCESS) return outcome::answer(c.refused);
  CUDA_ARRAY3D_DESCRIPTOR about{};
  about.Width = body.width, about.Height = body.height, about.Depth = body.depth;
  about.Format = static_cast<CUarray_format>(body.format);
  about.NumChannels = body.channels, about.Flags = body.flags;
  const std::uint64_t bytes = least_bytes(about, body.levels);
  CUdevice device = 0;
  if (const CUresult code = c.driver().cuCtxGetDevice(&device); code != CUDA_SUCCESS)
    return outcome::answer(code);
  const auto make = [&](auto&& create) { return with_room(c, device, bytes, &quota::admit, create); };
  if (mipmapped) {
    CUmipmappedArray made = nullptr;
    const CUresult code =
        make([&] { return call_driver(c.driver().cuMipmappedArrayCreate, &made, &about, body.levels); });
    return keep(c, body, code, made, bytes, device);
  }
  CUarray made = nullptr;
  const CUresult code = make([&] { return call_driver(c.driver().cuArray3DCreate_v2, &made, &about); });
  return keep(c, body, code, made, bytes, device);
}

/// `get` gives the native array of a part: a level or a plane.
template <class H, class Get>
outcome part(call& c, const marshal::subarray_body& body, Get&& get) {
  if (c.refused != CUDA_SUCCESS) return outcome::answer(c.refused);
  H parent = nullptr;
  CUarray made = nullptr;
  CUresult code = c.objects().resolve(body.parent, parent);
  if (code == CUDA_SUCCESS) code = get(&made, parent, body.index);
  if (code != CUDA_SUCCESS) return outcome::answer(code);
  const std::shared_ptr<void> siblings = c.objects().find(api::handle_trait<H>::kind, body.parent)->extra;
  if (!c.objects().create(body.handle, made, c.as_record(), std::make_shared<derived_ids>()))
    return outcome::malformed();
  static_cast<derived_ids*>(siblings.get())->push_back(body.handle);
  return outcome::answer(CUDA_SUCCESS);
}

template <class H>
outcome destroy(call& c, const marshal::handle_body& body, CUresult (*entry)(H)) {
  H native = nullptr;
  if (const CUresult code = c.objects().resolve(body.handle, native); code != CUDA_SUCCESS)
    return outcome::answer(code);
  const std::shared_ptr<void> parts = c.objects().find(api::handle_trait<H>::kind, body.handle)->extra;
  for (const std::uint64_t id : *static_cast<derived_ids*>(parts.get())) c.objects().erase(id);
  c.objects().erase(body.handle);
  c.session.memory().array_gone(body.handle);
  c.give_up_turn();  // it waits for the device
  return outcome::answer(call_driver(entry, native));
}

template <class H>
outcome sparse(call& c, const marshal::handle_body& body,
               CUresult (*entry)(CUDA_ARRAY_SPARSE_PROPERTIES*, H)) {
  H native = nullptr;
  CUresult code = c.refused;
  if (code == CUDA_SUCCESS) code = c.objects().resolve(body.handle, native);
  CUDA_ARRAY_SPARSE_PROPERTIES p{};
  if (code == CUDA_SUCCESS) code = call_driver(entry, &p, native);
  marshal::sparse_reply reply;
  reply.tile = {p.tileExtent.width, p.tileExtent.height, p.tileExtent.depth};
  reply.tail_level = p.miptailFirstLevel, reply.tail_size = p.miptailSize, reply.flags = p.flags;
  marshal::put_body(c.reply, reply);
  return outcome::answer(code);
}

}  // namespace

void forget_arrays_of_context(object_tables& objects, std::uint64_t context) {
  for (const api::handle_kind kind : {api::handle_kind::array, api::handle_kind::mipmapped_array,
                                      api::handle_kind::texture_object, api::handle_kind::surface_object}) {
    for (const std::uint64_t id : objects.ids(kind)) {
      const server_object* object = objects.at(id);
      if (object && !object->records.empty() && object->records.front().context == context) objects.erase(id);
    }
  }
}

namespace ends {

outcome cuArray3DCreate_v2(call& c, const marshal::array_body& body) { return make(c, body, false); }
outcome cuMipmappedArrayCreate(call& c, const marshal::array_body& body) { return make(c, body, true); }

outcome cuMipmappedArrayGetLevel(call& c, const marshal::subarray_body& body) {
  return part<CUmipmappedArray>(c, body, [&](CUarray* made, CUmipmappedArray parent, std::uint32_t level) {
    return call_driver(c.driver().cuMipmappedArrayGetLevel, made, parent, level);
  });
}

outcome cuArrayGetPlane(call& c, const marshal::subarray_body& body) {
  return part<CUarray>(c, body, [&](CUarray* made, CUarray parent, std::uint32_t plane) {
    return call_driver(c.driver().cuArrayGetPlane, made, parent, plane);
  });
}

outcome cuArrayDestroy(call& c, const marshal::handle_body& body) {
  return destroy(c, body, c.driver().cuArrayDestroy);
}
outcome cuMipmappedArrayDestroy(call& c, const marshal::handle_body& body) {
  return destroy(c, body, c.driver().cuMipmappedArrayDestroy);
}

outcome cuArrayGetSparseProperties(call& c, const marshal::handle_body& body) {
  return sparse(c, body, c.driver().cuArrayGetSparseProperties);
}
outcome cuMipmappedArrayGetSparseProperties(call& c, const marshal::handle_body& body) {
  return sparse(c, body, c.driver().cuMipmappedArrayGetSparseProperties);
}

}  // namespace ends
}  // namespace outboard::backend
