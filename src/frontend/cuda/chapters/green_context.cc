// Chapter green context. A resource in the program's hands carries the server's number for it where the
// driver keeps what it alone reads; descriptors, green contexts and the contexts made of them are handles
// like others.
#include <cstring>

#include "frontend/cuda/contexts.hh"
#include "frontend/cuda/ends.hh"
#include "frontend/cuda/objects.hh"
#include "marshal/cuda/resource_bodies.hh"

namespace outboard::frontend::cuda {
namespace {

using api::handle_kind;
using api::opcode;

/// A descriptor, and whether it was made of nothing.
using descriptor_info = object;

constexpr std::size_t number_at = 4;  // in the padding, so that it is aligned in the struct
static_assert(sizeof CUdevResource::_internal_padding >= number_at + sizeof(std::uint64_t));
static_assert(sizeof CUdevResource::_oversize == marshal::resource_bytes);

std::uint64_t number_of(const CUdevResource& resource) {
  std::uint64_t number = 0;
  std::memcpy(&number, resource._internal_padding + number_at, sizeof number);
  return number;
}

/// Item `i` of a reply; false: it has none.
bool take_resource(const marshal::resources_reply& reply, std::size_t i, CUdevResource& out) {
  if (i >= reply.numbers.size() || i >= reply.types.size() ||
      (i + 1) * marshal::resource_bytes > reply.contents.size()) {
    return false;
  }
  out = {};
  out.type = static_cast<CUdevResourceType>(reply.types[i]);
  std::memcpy(out._internal_padding + number_at, &reply.numbers[i], sizeof reply.numbers[i]);
  std::memcpy(out._oversize, reply.contents.data() + i * marshal::resource_bytes, marshal::resource_bytes);
  return true;
}

/// Those of CUDA 13: multiprocessors, work queues and their settings.
bool is_type(CUdevResourceType type) {
  const auto n = static_cast<int>(type);
  return n == CU_DEV_RESOURCE_TYPE_SM || n == 1000 || n == 10000;
}

CUresult query(lane& own, like<opcode::cuDeviceGetDevResource> what, std::uint64_t of, CUdevResource* out,
               CUdevResourceType type) {
  if (!out) return CUDA_ERROR_INVALID_VALUE;
  if (!is_type(type)) return CUDA_ERROR_INVALID_RESOURCE_TYPE;
  marshal::resources_reply reply;
  const CUresult result = call(what, {own, 0}, marshal::resource_query_body{.of = of, .type = type}, reply);
  if (result != CUDA_SUCCESS) return result;
  return take_resource(reply, 0, *out) ? CUDA_SUCCESS
                                       : malformed_reply(own, static_cast<std::uint32_t>(what.code()));
}

/// Reserves a handle for `info`, asks the server to make the object, and gives the handle out.
template <class Line, class H, class Body>
CUresult make(lane& own, Line what, H* out, std::unique_ptr<object> info, Body&& body) {
  handle_table& table = own.state().handles[api::handle_trait<H>::kind];
  const std::uint64_t handle = table.reserve(std::move(info));
  if (!handle) return CUDA_ERROR_OUT_OF_MEMORY;
  const CUresult result = call(what, {own, 0}, body(handle));
  if (result != CUDA_SUCCESS) return table.release(handle), result;
  *out = reinterpret_cast<H>(handle);
  return CUDA_SUCCESS;
}

/// The context by which a green one is used: like its primary context, but for where work runs.
CUresult context_of(lane& own, green_info& green, CUgreenCtx handle) {
  process& p = own.state();
  context_state* primary = p.devices.primary(green.device);
  auto made = std::make_unique<context_state>();
  context_state* state = made.get();
  state->device = green.device;
  state->flags = primary->flags.load() | CU_CTX_MAP_HOST;  // drivers say so of every one
  state->api_version = primary->api_version;
  state->id = green.id;
  state->green = value_of(handle);
  state->owner = primary;
  for (std::size_t i = 0; i < state->limits.size(); ++i) state->limits[i] = primary->limits[i].load();
  CUcontext out = nullptr;
  const CUresult code =
      make(own, typed<opcode::cuCtxFromGreenCtx>, &out, std::move(made), [&](std::uint64_t own_handle) {
        return marshal::green_context_body{.handle = own_handle,
                                           .source = value_of(handle),
                                           .owner = primary->handle,
                                           .device = green.device};
      });
  if (code != CUDA_SUCCESS) return code;
  state->handle = green.context_handle = value_of(out);
  state->active.store(true);
  return CUDA_SUCCESS;
}

}  // namespace

CUresult ends::cuDeviceGetDevResource(CUdevice device, CUdevResource* out, CUdevResourceType type) {
  lane& own = this_lane();
  if (!out) return CUDA_ERROR_INVALID_VALUE;
  if (!own.state().devices.primary(device)) return CUDA_ERROR_INVALID_DEVICE;
  return query(own, typed<opcode::cuDeviceGetDevResource>, static_cast<std::uint64_t>(device), out, type);
}

CUresult ends::cuCtxGetDevResource(CUcontext context, CUdevResource* out, CUdevResourceType type) {
  lane& own = this_lane();
  if (!find_context(own, context)) return CUDA_ERROR_INVALID_CONTEXT;
  return query(own, typed<opcode::cuCtxGetDevResource>, value_of(context), out, type);
}

CUresult ends::cuGreenCtxGetDevResource(CUgreenCtx context, CUdevResource* out, CUdevResourceType type) {
  lane& own = this_lane();
  if (!find_object<green_info>(own, context)) return CUDA_ERROR_INVALID_CONTEXT;
  return query(own, typed<opcode::cuGreenCtxGetDevResource>, value_of(context), out, type);
}

CUresult ends::cuDevSmResourceSplitByCount(CUdevResource* result, unsigned* groups,
                                           const CUdevResource* input, CUdevResource* rest, unsigned flags,
                                           unsigned minimum) {
  lane& own = this_lane();
  if (!groups || !input || (result && *groups == 0)) return CUDA_ERROR_INVALID_VALUE;
  marshal::resource_split_body body{.input = number_of(*input),
                                    .flags = flags,
                                    .minimum = minimum,
                                    .asks = !result,
                                    .wants_rest = rest != nullptr};
  constexpr unsigned most_groups = 4096;
  if (result) body.capacity = std::min(*groups, most_groups);
  marshal::resources_reply reply;
  const CUresult code = call<opcode::cuDevSmResourceSplitByCount>({own, 0}, body, reply);
  if (code != CUDA_SUCCESS) return code;
  const std::size_t made = result ? reply.count : 0;
  bool fits = made <= body.capacity && reply.numbers.size() == made + (rest ? 1 : 0);
  for (std::size_t i = 0; fits && i < made; ++i) fits = take_resource(reply, i, result[i]);
  if (fits && rest) fits = take_resource(reply, made, *rest);
  if (!fits) return malformed_reply(own, static_cast<std::uint32_t>(opcode::cuDevSmResourceSplitByCount));
  *groups = reply.count;
  return CUDA_SUCCESS;
}

CUresult ends::cuDevResourceGenerateDesc(CUdevResourceDesc* out, CUdevResource* resources, unsigned count) {
  lane& own = this_lane();
  if (!out || !resources || count == 0) return CUDA_ERROR_INVALID_VALUE;
  return make(own, typed<opcode::cuDevResourceGenerateDesc>, out, std::make_unique<descriptor_info>(),
              [&](std::uint64_t handle) {
                marshal::descriptor_body body{.handle = handle};
                for (unsigned i = 0; i < count; ++i) body.resources.push_back(number_of(resources[i]));
                return body;
              });
}

CUresult ends::cuGreenCtxCreate(CUgreenCtx* out, CUdevResourceDesc descriptor, CUdevice device,
                                unsigned flags) {
  lane& own = this_lane();
  process& p = own.state();
  // Without a descriptor: the whole device.
  if (!out || (descriptor && !find_object<descriptor_info>(own, descriptor))) return CUDA_ERROR_INVALID_VALUE;
  if (!p.devices.primary(device)) return CUDA_ERROR_INVALID_DEVICE;
  if (flags != CU_GREEN_CTX_DEFAULT_STREAM) return CUDA_ERROR_INVALID_VALUE;
  // It holds its primary context (manual).
  CUcontext primary = nullptr;
  if (const CUresult code = ends::cuDevicePrimaryCtxRetain(&primary, device); code != CUDA_SUCCESS)
    return code;
  auto info = std::make_unique<green_info>();
  info->device = device;
  info->id = p.devices.next_context_id();
  const CUresult code =
      make(own, typed<opcode::cuGreenCtxCreate>, out, std::move(info), [&](std::uint64_t handle) {
        return marshal::green_context_body{
            .handle = handle, .source = value_of(descriptor), .device = device, .flags = flags};
      });
  if (code != CUDA_SUCCESS) (void)ends::cuDevicePrimaryCtxRelease_v2(device);
  return code;
}

CUresult ends::cuCtxFromGreenCtx(CUcontext* out, CUgreenCtx handle) {
  lane& own = this_lane();
  if (!out) return CUDA_ERROR_INVALID_VALUE;
  auto* green = find_object<green_info>(own, handle);
  if (!green) return CUDA_ERROR_INVALID_CONTEXT;
  const std::lock_guard lock(green->mutex);
  if (!green->context_handle) {
    if (const CUresult code = context_of(own, *green, handle); code != CUDA_SUCCESS) return code;
  }
  *out = reinterpret_cast<CUcontext>(green->context_handle);
  return CUDA_SUCCESS;
}

CUresult ends::cuGreenCtxDestroy(CUgreenCtx handle) {
  lane& own = this_lane();
  process& p = own.state();
  auto* green = find_object<green_info>(own, handle);
  if (!green) return CUDA_ERROR_INVALID_CONTEXT;
  const std::int32_t device = green->device;
  const std::uint64_t context = green->context_handle;
  if (const CUresult code = call<opcode::cuGreenCtxDestroy>(
          {own, 0},
          marshal::green_context_body{.handle = context, .source = value_of(handle), .device = device});
      code != CUDA_SUCCESS)
    return code;
  // The state stays, like that of any destroyed context, because threads may have it current.
  if (context_state* state = p.devices.find_context(context)) state->active.store(false);
  p.handles[handle_kind::green_context].release(value_of(handle));
  return ends::cuDevicePrimaryCtxRelease_v2(device);
}

CUresult ends::cuGreenCtxStreamCreate(CUstream* out, CUgreenCtx handle, unsigned flags, int priority) {
  lane& own = this_lane();
  process& p = own.state();
  auto* green = find_object<green_info>(own, handle);
  if (!green) return CUDA_ERROR_INVALID_CONTEXT;
  if (!out || flags != CU_STREAM_NON_BLOCKING) return CUDA_ERROR_INVALID_VALUE;
  const auto& facts = p.devices.facts_of(green->device);
  const int within = std::clamp(priority, facts.greatest_priority, facts.least_priority);
  auto info = detail::stream_in(value_of(handle), flags, within);
  info->context = p.devices.primary(green->device)->handle;
  return make(own, typed<opcode::cuGreenCtxStreamCreate>, out, std::move(info), [&](std::uint64_t made) {
    return marshal::green_stream_body{
        .handle = made, .context = value_of(handle), .flags = flags, .priority = priority};
  });
}

CUresult ends::cuGreenCtxGetId(CUgreenCtx handle, unsigned long long* id) {
  lane& own = this_lane();
  if (!id) return CUDA_ERROR_INVALID_VALUE;
  const auto* green = find_object<green_info>(own, handle);
  return green ? (*id = green->id, CUDA_SUCCESS) : CUDA_ERROR_INVALID_CONTEXT;
}

}  // namespace outboard::frontend::cuda
