// Handlers of the chapter multicast. They are carried out by devices that are not real boards only: a
// multicast team that is torn down by a dying worker can leave a shared NVLink switch in a state that other
// tenants suffer from, so sessions on the vendor's driver are told that there is no such thing (attribute 132
// as well).
#include "backend/cuda/driver_call.hh"
#include "backend/cuda/ends.hh"
#include "backend/cuda/session.hh"

namespace outboard::backend {
namespace {

bool allowed(call& c) { return c.session.facts().device_kind != "vendor"; }

CUmulticastObjectProp properties_of(const marshal::multicast_body& body) {
  CUmulticastObjectProp prop{};
  prop.numDevices = body.devices;
  prop.size = body.size;
  prop.handleTypes = body.handle_types;
  prop.flags = body.flags;
  return prop;
}

CUresult resolve(call& c, std::uint64_t handle, CUmemGenericAllocationHandle& out) {
  void* native = nullptr;
  const CUresult code = c.objects().resolve(api::handle_kind::allocation, handle, native);
  out = reinterpret_cast<CUmemGenericAllocationHandle>(native);
  return code == CUDA_SUCCESS ? code : CUDA_ERROR_INVALID_VALUE;
}

/// Resolves the object; what `act` changed is replayed when the session is rebuilt.
template <class Act>
outcome change(call& c, const marshal::multicast_body& body, Act&& act) {
  if (!allowed(c)) return outcome::answer(CUDA_ERROR_NOT_SUPPORTED);
  CUmemGenericAllocationHandle object = 0;
  CUresult code = resolve(c, body.handle, object);
  if (code == CUDA_SUCCESS) code = act(object);
  if (code == CUDA_SUCCESS) c.objects().amend(body.handle, c.as_record());
  return outcome::answer(code);
}

}  // namespace

namespace ends {

outcome cuMulticastCreate(call& c, const marshal::multicast_body& body) {
  CUmemGenericAllocationHandle made = 0;
  const CUmulticastObjectProp prop = properties_of(body);
  const CUresult code =
      allowed(c) ? call_driver(c.driver().cuMulticastCreate, &made, &prop) : CUDA_ERROR_NOT_SUPPORTED;
  const bool kept = code == CUDA_SUCCESS
                        ? c.objects().create(body.handle, reinterpret_cast<void*>(made), c.as_record())
                        : c.objects().fail(body.handle, code);
  return kept ? outcome::answer(code) : outcome::malformed();
}

outcome cuMulticastAddDevice(call& c, const marshal::multicast_body& body) {
  return change(c, body, [&](CUmemGenericAllocationHandle object) {
    return call_driver(c.driver().cuMulticastAddDevice, object, body.device);
  });
}

outcome cuMulticastBindMem(call& c, const marshal::multicast_body& body) {
  return change(c, body, [&](CUmemGenericAllocationHandle object) {
    CUmemGenericAllocationHandle memory = 0;
    const CUresult code = resolve(c, body.memory, memory);
    return code != CUDA_SUCCESS ? code
                                : call_driver(c.driver().cuMulticastBindMem, object, body.offset, memory,
                                              body.memory_offset, body.size, body.flags);
  });
}

outcome cuMulticastBindAddr(call& c, const marshal::multicast_body& body) {
  return change(c, body, [&](CUmemGenericAllocationHandle object) {
    return call_driver(c.driver().cuMulticastBindAddr, object, body.offset, body.memory, body.size,
                       body.flags);
  });
}

/// The binding's own record stays: replayed with the unbinding behind it.
outcome cuMulticastUnbind(call& c, const marshal::multicast_body& body) {
  return change(c, body, [&](CUmemGenericAllocationHandle object) {
    return call_driver(c.driver().cuMulticastUnbind, object, body.device, body.offset, body.size);
  });
}

outcome cuMulticastGetGranularity(call& c, const marshal::multicast_body& body) {
  std::size_t granularity = 0;
  const CUmulticastObjectProp prop = properties_of(body);
  const CUresult code = allowed(c) ? call_driver(c.driver().cuMulticastGetGranularity, &granularity, &prop,
                                                 static_cast<CUmulticastGranularity_flags>(body.option))
                                   : CUDA_ERROR_NOT_SUPPORTED;
  marshal::put_body(c.reply, marshal::number_reply{static_cast<std::int64_t>(granularity)});
  return outcome::answer(code);
}

}  // namespace ends
}  // namespace outboard::backend
