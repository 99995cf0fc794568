// Chapter green context. A resource in the program's hands carries the server's number for it where the
// driver keeps what it alone reads; descriptors, green contexts and the contexts made of them are handles
// like others.
#include <cstring>

#include "frontend/cuda/contexts.hh"
#include "frontend/cuda/ends.hh"
#include "frontend/cuda/gate.hh"
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

template <class Body>
CUresult ask(std::type_identity_t<opcode_for<Body, marshal::resources_reply>> code, const Body& body,
             marshal::resources_reply& reply) {
  typed_request r(code, this_lane(), body);
  r.in_context(0);
  return r.call(reply);
}

/// Those of CUDA 13: multiprocessors, work queues and their settings.
bool is_type(CUdevResourceType type) {
  const auto n = static_cast<int>(type);
  return n == CU_DEV_RESOURCE_TYPE_SM || n == 1000 || n == 10000;
}

CUresult query(opcode_for<marshal::resource_query_body, marshal::resources_reply> code, std::uint64_t of,
               CUdevResource* out, CUdevResourceType type) {
  if (!out) return CUDA_ERROR_INVALID_VALUE;
  if (!is_type(type)) return CUDA_ERROR_INVALID_RESOURCE_TYPE;
  marshal::resources_reply reply;
  const CUresult result = ask(code, marshal::resource_query_body{of, type}, reply);
  if (result != CUDA_SUCCESS) return result;
  return take_resource(reply, 0, *out) ? CUDA_SUCCESS : malformed_reply(code);
}

/// Reserves a handle for `info`, asks the server to make the object, and gives the handle out.
template <class Body, class H, class Make>
CUresult make(opcode_for<Body> code, H* out, std::unique_ptr<object> info, Make&& body) {
  handle_table& table = process::instance().objects().handles(api::handle_trait<H>::kind);
  const std::uint64_t handle = table.reserve(std::move(info));
  if (!handle) return CUDA_ERROR_OUT_OF_MEMORY;
  typed_request r(code, this_lane(), body(handle));
  r.in_context(0);
  const CUresult result = r.call();
  if (result != CUDA_SUCCESS) return table.release(handle), result;
  *out = reinterpret_cast<H>(handle);
  return CUDA_SUCCESS;
}

/// The context that a green one is used by: its primary context in all but where work runs.
CUresult context_of(green_info& green, CUgreenCtx handle) {
  process& p = process::instance();
  context_state* primary = p.objects().primary(green.device);
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
  const CUresult code = make<marshal::green_context_body>(
      opcode::cuCtxFromGreenCtx, &out, std::move(made), [&](std::uint64_t own_handle) {
        return marshal::green_context_body{own_handle, value_of(handle), primary->handle, green.device, 0};
      });
  if (code != CUDA_SUCCESS) return code;
  state->handle = green.context_handle = value_of(out);
  state->active.store(true);
  return CUDA_SUCCESS;
}

}  // namespace

#define OUTBOARD_GATE(symbol) \
  if (const CUresult refused = gate<opcode::symbol>(this_lane()); refused != CUDA_SUCCESS) return refused

CUresult ends::cuDeviceGetDevResource(CUdevice device, CUdevResource* out, CUdevResourceType type) {
  OUTBOARD_GATE(cuDeviceGetDevResource);
  if (!out) return CUDA_ERROR_INVALID_VALUE;
  if (!process::instance().objects().primary(device)) return CUDA_ERROR_INVALID_DEVICE;
  return query(opcode::cuDeviceGetDevResource, static_cast<std::uint64_t>(device), out, type);
}

CUresult ends::cuCtxGetDevResource(CUcontext context, CUdevResource* out, CUdevResourceType type) {
  OUTBOARD_GATE(cuCtxGetDevResource);
  if (!find_context(context)) return CUDA_ERROR_INVALID_CONTEXT;
  return query(opcode::cuCtxGetDevResource, value_of(context), out, type);
}

CUresult ends::cuGreenCtxGetDevResource(CUgreenCtx context, CUdevResource* out, CUdevResourceType type) {
  OUTBOARD_GATE(cuGreenCtxGetDevResource);
  if (!find_object<green_info>(context)) return CUDA_ERROR_INVALID_CONTEXT;
  return query(opcode::cuGreenCtxGetDevResource, value_of(context), out, type);
}

CUresult ends::cuDevSmResourceSplitByCount(CUdevResource* result, unsigned* groups,
                                           const CUdevResource* input, CUdevResource* rest, unsigned flags,
                                           unsigned minimum) {
  OUTBOARD_GATE(cuDevSmResourceSplitByCount);
  if (!groups || !input || (result && *groups == 0)) return CUDA_ERROR_INVALID_VALUE;
  marshal::resource_split_body body{number_of(*input), 0, flags, minimum, !result, rest != nullptr};
  constexpr unsigned most_groups = 4096;
  if (result) body.capacity = std::min(*groups, most_groups);
  marshal::resources_reply reply;
  const CUresult code = ask(opcode::cuDevSmResourceSplitByCount, body, reply);
  if (code != CUDA_SUCCESS) return code;
  const std::size_t made = result ? reply.count : 0;
  bool fits = made <= body.capacity && reply.numbers.size() == made + (rest ? 1 : 0);
  for (std::size_t i = 0; i < made && fits; ++i) fits = take_resource(reply, i, result[i]);
  if (fits && rest) fits = take_resource(reply, made, *rest);
  if (!fits) return malformed_reply(opcode::cuDevSmResourceSplitByCount);
  *groups = reply.count;
  return CUDA_SUCCESS;
}

CUresult ends::cuDevResourceGenerateDesc(CUdevResourceDesc* out, CUdevResource* resources, unsigned count) {
  OUTBOARD_GATE(cuDevResourceGenerateDesc);
  if (!out || !resources || count == 0) return CUDA_ERROR_INVALID_VALUE;
  return make<marshal::descriptor_body>(opcode::cuDevResourceGenerateDesc, out,
                                        std::make_unique<descriptor_info>(), [&](std::uint64_t handle) {
                                          marshal::descriptor_body body{handle, {}};
                                          for (unsigned i = 0; i < count; ++i)
                                            body.resources.push_back(number_of(resources[i]));
                                          return body;
                                        });
}

CUresult ends::cuGreenCtxCreate(CUgreenCtx* out, CUdevResourceDesc descriptor, CUdevice device,
                                unsigned flags) {
  OUTBOARD_GATE(cuGreenCtxCreate);
  process& p = process::instance();
  // Without a descriptor: the whole device.
  if (!out || (descriptor && !find_object<descriptor_info>(descriptor))) return CUDA_ERROR_INVALID_VALUE;
  if (!p.objects().primary(device)) return CUDA_ERROR_INVALID_DEVICE;
  if (flags != CU_GREEN_CTX_DEFAULT_STREAM) return CUDA_ERROR_INVALID_VALUE;
  // It holds its primary context (manual).
  CUcontext primary = nullptr;
  if (const CUresult code = ends::cuDevicePrimaryCtxRetain(&primary, device); code != CUDA_SUCCESS)
    return code;
  auto info = std::make_unique<green_info>();
  info->device = device;
  info->id = p.objects().next_context_id();
  const CUresult code = make<marshal::green_context_body>(
      opcode::cuGreenCtxCreate, out, std::move(info), [&](std::uint64_t handle) {
        return marshal::green_context_body{handle, value_of(descriptor), 0, device, flags};
      });
  if (code != CUDA_SUCCESS) (void)ends::cuDevicePrimaryCtxRelease_v2(device);
  return code;
}

CUresult ends::cuCtxFromGreenCtx(CUcontext* out, CUgreenCtx handle) {
  OUTBOARD_GATE(cuCtxFromGreenCtx);
  if (!out) return CUDA_ERROR_INVALID_VALUE;
  auto* green = find_object<green_info>(handle);
  if (!green) return CUDA_ERROR_INVALID_CONTEXT;
  const std::lock_guard lock(green->mutex);
  if (!green->context_handle) {
    if (const CUresult code = context_of(*green, handle); code != CUDA_SUCCESS) return code;
  }
  *out = reinterpret_cast<CUcontext>(green->context_handle);
  return CUDA_SUCCESS;
}

CUresult ends::cuGreenCtxDestroy(CUgreenCtx handle) {
  OUTBOARD_GATE(cuGreenCtxDestroy);
  process& p = process::instance();
  auto* green = find_object<green_info>(handle);
  if (!green) return CUDA_ERROR_INVALID_CONTEXT;
  const std::int32_t device = green->device;
  const std::uint64_t context = green->context_handle;
  request_of<opcode::cuGreenCtxDestroy> r(
      this_lane(), marshal::green_context_body{context, value_of(handle), 0, device, 0});
  r.in_context(0);
  if (const CUresult code = r.call(); code != CUDA_SUCCESS) return code;
  // The state stays, as that of any destroyed context: threads may have it current.
  if (context_state* state = p.objects().find_context(context)) state->active.store(false);
  p.objects().handles(handle_kind::green_context).release(value_of(handle));
  return ends::cuDevicePrimaryCtxRelease_v2(device);
}

CUresult ends::cuGreenCtxStreamCreate(CUstream* out, CUgreenCtx handle, unsigned flags, int priority) {
  OUTBOARD_GATE(cuGreenCtxStreamCreate);
  process& p = process::instance();
  auto* green = find_object<green_info>(handle);
  if (!green) return CUDA_ERROR_INVALID_CONTEXT;
  if (!out || flags != CU_STREAM_NON_BLOCKING) return CUDA_ERROR_INVALID_VALUE;
  const auto& facts = p.facts().devices[static_cast<std::size_t>(green->device)];
  const int within = std::clamp(priority, facts.greatest_priority, facts.least_priority);
  auto info = detail::stream_in(value_of(handle), flags, within);
  info->context = p.objects().primary(green->device)->handle;
  return make<marshal::green_stream_body>(
      opcode::cuGreenCtxStreamCreate, out, std::move(info), [&](std::uint64_t made) {
        return marshal::green_stream_body{made, value_of(handle), flags, priority};
      });
}

CUresult ends::cuGreenCtxGetId(CUgreenCtx handle, unsigned long long* id) {
  OUTBOARD_GATE(cuGreenCtxGetId);
  if (!id) return CUDA_ERROR_INVALID_VALUE;
  const auto* green = find_object<green_info>(handle);
  return green ? (*id = green->id, CUDA_SUCCESS) : CUDA_ERROR_INVALID_CONTEXT;
}

}  // namespace outboard::frontend::cuda
