// Handlers of green contexts: resources by number, descriptors and green contexts as objects. A context made
// of a green one is current like any other, but what is made in it belongs to its primary context. No records
// are kept: how a device is cut into resources is that device's own.
#include <cstring>

#include "backend/cuda/driver_call.hh"
#include "backend/cuda/ends.hh"
#include "backend/cuda/session.hh"
#include "marshal/cuda/resource_bodies.hh"

namespace outboard::backend {
namespace {

static_assert(sizeof CUdevResource::_oversize == marshal::resource_bytes);

bool add(call& c, const CUdevResource& resource, marshal::resources_reply& reply) {
  const bool valid = resource.type != CU_DEV_RESOURCE_TYPE_INVALID;
  const std::uint64_t number = valid ? c.session.resources().number_of(resource) : 0;
  if (valid && number == 0) return false;
  reply.numbers.push_back(number);
  reply.types.push_back(resource.type);
  reply.contents.insert(reply.contents.end(), resource._oversize,
                        resource._oversize + marshal::resource_bytes);
  return true;
}

outcome give(call& c, CUresult code, const CUdevResource& resource) {
  marshal::resources_reply reply{1, {}, {}, {}};
  if (code == CUDA_SUCCESS && !add(c, resource, reply)) code = CUDA_ERROR_OUT_OF_MEMORY;
  marshal::put_body(c.reply, reply);
  return outcome::answer(code);
}

outcome kept(call& c, std::uint64_t handle, CUresult code, void* native) {
  const bool fits =
      code == CUDA_SUCCESS ? c.objects().create(handle, native, record{}) : c.objects().fail(handle, code);
  return fits ? outcome::answer(code) : outcome::malformed();
}

template <class H, class Entry>
outcome query(call& c, const marshal::resource_query_body& body, Entry entry) {
  H owner{};
  CUdevResource resource{};
  CUresult code = c.objects().resolve(body.of, owner);
  if (code == CUDA_SUCCESS)
    code = call_driver(entry, owner, &resource, static_cast<CUdevResourceType>(body.type));
  return give(c, code, resource);
}

}  // namespace

namespace ends {

outcome cuDeviceGetDevResource(call& c, const marshal::resource_query_body& body) {
  CUdevResource resource{};
  const CUresult code = call_driver(c.driver().cuDeviceGetDevResource, static_cast<CUdevice>(body.of),
                                    &resource, static_cast<CUdevResourceType>(body.type));
  return give(c, code, resource);
}
outcome cuCtxGetDevResource(call& c, const marshal::resource_query_body& body) {
  return query<CUcontext>(c, body, c.driver().cuCtxGetDevResource);
}
outcome cuGreenCtxGetDevResource(call& c, const marshal::resource_query_body& body) {
  return query<CUgreenCtx>(c, body, c.driver().cuGreenCtxGetDevResource);
}

outcome cuDevSmResourceSplitByCount(call& c, const marshal::resource_split_body& body) {
  constexpr std::uint32_t most_groups = 4096;  // more than any device has multiprocessors
  if (body.capacity > most_groups) return outcome::malformed();
  const CUdevResource* input = c.session.resources().find(body.input);
  if (!input) return outcome::answer(CUDA_ERROR_INVALID_RESOURCE_TYPE);
  std::vector<CUdevResource> groups(body.capacity);
  CUdevResource rest{};
  unsigned count = body.capacity;
  CUresult code = call_driver(c.driver().cuDevSmResourceSplitByCount, body.asks ? nullptr : groups.data(),
                              &count, input, body.wants_rest ? &rest : nullptr, body.flags, body.minimum);
  marshal::resources_reply reply{count, {}, {}, {}};
  for (unsigned i = 0; code == CUDA_SUCCESS && !body.asks && i < count && i < body.capacity; ++i) {
    if (!add(c, groups[i], reply)) code = CUDA_ERROR_OUT_OF_MEMORY;
  }
  if (code == CUDA_SUCCESS && body.wants_rest && !add(c, rest, reply)) code = CUDA_ERROR_OUT_OF_MEMORY;
  marshal::put_body(c.reply, reply);
  return outcome::answer(code);
}

outcome cuDevResourceGenerateDesc(call& c, const marshal::descriptor_body& body) {
  constexpr std::size_t most = 4096;
  if (body.resources.size() > most) return outcome::malformed();
  std::vector<CUdevResource> resources;
  for (const std::uint64_t number : body.resources) {
    const CUdevResource* found = c.session.resources().find(number);
    if (!found) return kept(c, body.handle, CUDA_ERROR_INVALID_RESOURCE_TYPE, nullptr);
    resources.push_back(*found);
  }
  CUdevResourceDesc made = nullptr;
  const CUresult code = call_driver(c.driver().cuDevResourceGenerateDesc, &made, resources.data(),
                                    static_cast<unsigned>(resources.size()));
  return kept(c, body.handle, code, made);
}

outcome cuGreenCtxCreate(call& c, const marshal::green_context_body& body) {
  CUdevResourceDesc descriptor = nullptr;
  CUgreenCtx made = nullptr;
  CUresult code = body.source ? c.objects().resolve(body.source, descriptor) : CUDA_SUCCESS;
  if (code == CUDA_SUCCESS)
    code = call_driver(c.driver().cuGreenCtxCreate, &made, descriptor, body.device, body.flags);
  return kept(c, body.handle, code, made);
}

outcome cuCtxFromGreenCtx(call& c, const marshal::green_context_body& body) {
  CUgreenCtx source = nullptr;
  CUcontext made = nullptr;
  CUresult code = c.objects().resolve(body.source, source);
  if (code == CUDA_SUCCESS) code = call_driver(c.driver().cuCtxFromGreenCtx, &made, source);
  if (code == CUDA_SUCCESS) c.session.set_owner(body.handle, body.owner);
  return kept(c, body.handle, code, made);
}

outcome cuGreenCtxDestroy(call& c, const marshal::green_context_body& body) {
  CUgreenCtx green = nullptr;
  CUresult code = c.objects().resolve(body.source, green);
  if (code == CUDA_SUCCESS) code = call_driver(c.driver().cuGreenCtxDestroy, green);
  if (code != CUDA_SUCCESS) return outcome::answer(code);
  c.objects().erase(body.source);
  if (body.handle) {
    c.objects().erase(body.handle);
    c.session.set_owner(body.handle, 0);
    c.session.contexts_changed();
  }
  return outcome::answer(code);
}

outcome cuGreenCtxStreamCreate(call& c, const marshal::green_stream_body& body) {
  CUgreenCtx green = nullptr;
  CUstream made = nullptr;
  CUresult code = c.objects().resolve(body.context, green);
  if (code == CUDA_SUCCESS)
    code = call_driver(c.driver().cuGreenCtxStreamCreate, &made, green, body.flags, body.priority);
  return kept(c, body.handle, code, made);
}

/// Events of all work of a context, green or not.
outcome cuCtxRecordEvent(call& c, const marshal::context_event_body& body) {
  const api::driver_table& d = c.driver();
  CUcontext context = nullptr;
  CUgreenCtx green = nullptr;
  CUevent event = nullptr;
  CUresult code =
      body.green ? c.objects().resolve(body.context, green) : c.objects().resolve(body.context, context);
  if (code == CUDA_SUCCESS) code = c.objects().resolve(body.event, event);
  if (code != CUDA_SUCCESS) return outcome::answer(code);
  return outcome::answer(
      body.green ? call_driver(body.wait ? d.cuGreenCtxWaitEvent : d.cuGreenCtxRecordEvent, green, event)
                 : call_driver(body.wait ? d.cuCtxWaitEvent : d.cuCtxRecordEvent, context, event));
}

}  // namespace ends
}  // namespace outboard::backend
