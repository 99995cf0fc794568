// Chapter multicast. Devices of the vendor's driver are reported without it (attribute 132): see
// src/backend/cuda/chapters/multicast.cc.
#include <algorithm>

#include "frontend/cuda/ends.hh"
#include "frontend/cuda/objects.hh"
#include "frontend/cuda/requests.hh"
#include "marshal/cuda/sharing_bodies.hh"

namespace outboard::frontend::cuda {
namespace {

handle_table& allocations() { return process::instance().objects().handles(api::handle_kind::allocation); }

allocation_info* find(CUmemGenericAllocationHandle handle) {
  auto* info = static_cast<allocation_info*>(allocations().find(handle));
  return info && info->handles.load() > 0 ? info : nullptr;
}

CUresult ready() {
  process& p = process::instance();
  if (const CUresult code = p.gate(this_lane(), false); code != CUDA_SUCCESS) return code;
  // Before any argument is looked at, as drivers of boards without it do.
  constexpr auto id = static_cast<std::size_t>(CU_DEVICE_ATTRIBUTE_MULTICAST_SUPPORTED);
  const auto able = [](const marshal::device_facts& device) {
    return id < device.attributes.size() && device.attributes[id].result == CUDA_SUCCESS &&
           device.attributes[id].value != 0;
  };
  return std::ranges::any_of(p.facts().devices, able) ? CUDA_SUCCESS : CUDA_ERROR_NOT_SUPPORTED;
}

CUresult tell(opcode_for<marshal::multicast_body> what, const marshal::multicast_body& body) {
  typed_request r(what, this_lane(), body);
  r.in_context(0);
  return r.call();
}

marshal::multicast_body body_of(const CUmulticastObjectProp& prop) {
  marshal::multicast_body body;
  body.size = prop.size;
  body.devices = prop.numDevices;
  body.handle_types = static_cast<std::uint32_t>(prop.handleTypes);
  body.flags = prop.flags;
  return body;
}

}  // namespace

namespace ends {

CUresult cuMulticastCreate(CUmemGenericAllocationHandle* mcHandle, const CUmulticastObjectProp* prop) {
  if (const CUresult code = ready(); code != CUDA_SUCCESS) return code;
  if (!mcHandle || !prop || prop->size == 0 || prop->numDevices == 0 || prop->flags != 0)
    return CUDA_ERROR_INVALID_VALUE;
  auto info = std::make_unique<allocation_info>();
  info->size = prop->size;
  info->multicast = true;
  info->properties.type = CU_MEM_ALLOCATION_TYPE_PINNED;
  info->properties.requestedHandleTypes = static_cast<CUmemAllocationHandleType>(prop->handleTypes);
  const std::uint64_t id = allocations().reserve(std::move(info));
  if (!id) return CUDA_ERROR_OUT_OF_MEMORY;
  marshal::multicast_body body = body_of(*prop);
  body.handle = id;
  if (const CUresult code = tell(api::opcode::cuMulticastCreate, body); code != CUDA_SUCCESS)
    return allocations().release(id), code;
  return *mcHandle = id, CUDA_SUCCESS;
}

CUresult cuMulticastAddDevice(CUmemGenericAllocationHandle mcHandle, CUdevice dev) {
  if (const CUresult code = ready(); code != CUDA_SUCCESS) return code;
  const allocation_info* object = find(mcHandle);
  if (!object || !object->multicast) return CUDA_ERROR_INVALID_VALUE;
  if (!process::instance().objects().primary(dev)) return CUDA_ERROR_INVALID_DEVICE;
  marshal::multicast_body body;
  body.handle = mcHandle;
  body.device = dev;
  return tell(api::opcode::cuMulticastAddDevice, body);
}

CUresult cuMulticastBindMem(CUmemGenericAllocationHandle mcHandle, size_t mcOffset,
                            CUmemGenericAllocationHandle memHandle, size_t memOffset, size_t size,
                            unsigned long long flags) {
  if (const CUresult code = ready(); code != CUDA_SUCCESS) return code;
  const allocation_info* object = find(mcHandle);
  const allocation_info* memory = find(memHandle);
  if (!object || !object->multicast || !memory || memory->multicast || flags != 0)
    return CUDA_ERROR_INVALID_VALUE;
  if (size == 0 || size > object->size || mcOffset > object->size - size || size > memory->size ||
      memOffset > memory->size - size) {
    return CUDA_ERROR_INVALID_VALUE;
  }
  marshal::multicast_body body;
  body.handle = mcHandle;
  body.offset = mcOffset;
  body.memory = memHandle;
  body.memory_offset = memOffset;
  body.size = size;
  return tell(api::opcode::cuMulticastBindMem, body);
}

CUresult cuMulticastBindAddr(CUmemGenericAllocationHandle mcHandle, size_t mcOffset, CUdeviceptr memptr,
                             size_t size, unsigned long long flags) {
  if (const CUresult code = ready(); code != CUDA_SUCCESS) return code;
  const allocation_info* object = find(mcHandle);
  if (!object || !object->multicast || flags != 0 || size == 0 || size > object->size ||
      mcOffset > object->size - size || !process::instance().memory().addresses().covers(memptr, size)) {
    return CUDA_ERROR_INVALID_VALUE;
  }
  marshal::multicast_body body;
  body.handle = mcHandle;
  body.offset = mcOffset;
  body.memory = memptr;
  body.size = size;
  return tell(api::opcode::cuMulticastBindAddr, body);
}

CUresult cuMulticastUnbind(CUmemGenericAllocationHandle mcHandle, CUdevice dev, size_t mcOffset,
                           size_t size) {
  if (const CUresult code = ready(); code != CUDA_SUCCESS) return code;
  const allocation_info* object = find(mcHandle);
  if (!object || !object->multicast || size == 0 || size > object->size || mcOffset > object->size - size)
    return CUDA_ERROR_INVALID_VALUE;
  marshal::multicast_body body;
  body.handle = mcHandle;
  body.device = dev;
  body.offset = mcOffset;
  body.size = size;
  return tell(api::opcode::cuMulticastUnbind, body);
}

CUresult cuMulticastGetGranularity(size_t* granularity, const CUmulticastObjectProp* prop,
                                   CUmulticastGranularity_flags option) {
  if (const CUresult code = ready(); code != CUDA_SUCCESS) return code;
  if (!granularity || !prop) return CUDA_ERROR_INVALID_VALUE;
  marshal::multicast_body body = body_of(*prop);
  body.option = option;
  request_of<api::opcode::cuMulticastGetGranularity> r(this_lane(), body);
  r.in_context(0);
  marshal::number_reply found;
  const CUresult code = r.call(found);
  if (code == CUDA_SUCCESS) *granularity = static_cast<std::size_t>(found.value);
  return code;
}

}  // namespace ends
}  // namespace outboard::frontend::cuda
