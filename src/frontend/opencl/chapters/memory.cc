#include "frontend/opencl/answer.hh"
#include "frontend/opencl/ends.hh"
#include "frontend/opencl/kinds.hh"
#include "frontend/opencl/message.hh"
#include "frontend/opencl/shared_book.hh"

namespace outboard::frontend::opencl::ends {
namespace {

constexpr cl_mem_flags access_flags = CL_MEM_READ_WRITE | CL_MEM_WRITE_ONLY | CL_MEM_READ_ONLY;
constexpr cl_mem_flags host_access_flags =
    CL_MEM_HOST_WRITE_ONLY | CL_MEM_HOST_READ_ONLY | CL_MEM_HOST_NO_ACCESS;
constexpr cl_mem_flags pointer_flags = CL_MEM_USE_HOST_PTR | CL_MEM_ALLOC_HOST_PTR | CL_MEM_COPY_HOST_PTR;

bool at_most_one(cl_mem_flags flags) { return (flags & (flags - 1)) == 0; }

cl_int check_flags(cl_mem_flags flags, cl_mem_flags known) {
  if ((flags & ~known) != 0 || !at_most_one(flags & access_flags) || !at_most_one(flags & host_access_flags))
    return CL_INVALID_VALUE;
  if ((flags & CL_MEM_USE_HOST_PTR) && (flags & (CL_MEM_ALLOC_HOST_PTR | CL_MEM_COPY_HOST_PTR)))
    return CL_INVALID_VALUE;
  return CL_SUCCESS;
}

cl_int check_host(cl_mem_flags flags, const void* host) {
  const bool wants = (flags & (CL_MEM_USE_HOST_PTR | CL_MEM_COPY_HOST_PTR)) != 0;
  return wants == (host != nullptr) ? CL_SUCCESS : CL_INVALID_HOST_PTR;
}

/// Larger than any device of the context allows.
bool too_large(const context_info& context, std::size_t size) {
  return std::all_of(context.devices.begin(), context.devices.end(), [size](cl_device_id device) {
    return size > find<device_info>(device)->number<cl_ulong>(CL_DEVICE_MAX_MEM_ALLOC_SIZE);
  });
}

cl_mem make_buffer(cl_context context, std::vector<cl_mem_properties> properties, cl_mem_flags flags,
                   std::size_t size, void* host, cl_int* errcode_ret) {
  const auto* const in = find<context_info>(context);
  if (!in) return fail(errcode_ret, CL_INVALID_CONTEXT);
  if (size == 0) return fail(errcode_ret, CL_INVALID_BUFFER_SIZE);
  if (const cl_int code = check_flags(flags, access_flags | host_access_flags | pointer_flags); code)
    return fail(errcode_ret, code);
  if (const cl_int code = check_host(flags, host); code) return fail(errcode_ret, code);
  if (too_large(*in, size)) return fail(errcode_ret, CL_INVALID_BUFFER_SIZE);
  if ((flags & access_flags) == 0) flags |= CL_MEM_READ_WRITE;
  auto info = std::make_unique<memory_info>();
  info->context = needed(context);
  info->flags = flags;
  info->size = size;
  info->properties = std::move(properties);
  if (flags & CL_MEM_USE_HOST_PTR) info->host = static_cast<std::byte*>(host);
  if (flags & CL_MEM_USE_HOST_PTR) {
    const auto block = shared_book::instance().find(host, size);
    info->shared = block && block->whole && block->context == context;
  }
  const bool shared = info->shared;
  // Memory that it stands for counts already.
  if (const cl_int code = memory_claim::take(*in, shared ? 0 : size, info->claim); code != CL_SUCCESS)
    return fail(errcode_ret, code);
  return create<cl_mem>(std::move(info), errcode_ret, [&](std::uint64_t id) {
    sent_bytes contents;
    if (host && !shared) {
      const cl_int code = send_bytes({static_cast<const std::byte*>(host), size}, contents);
      if (code != CL_SUCCESS) return code;
    }
    const marshal::opencl::buffer_body body{
        id, id_of(context), flags, size, shared ? reinterpret_cast<std::uint64_t>(host) : 0, contents.about};
    return post_body(opcode::clCreateBufferWithProperties, body, contents.rest);
  });
}

}  // namespace

cl_mem clCreateBuffer(cl_context context, cl_mem_flags flags, std::size_t size, void* host,
                      cl_int* errcode_ret) {
  return make_buffer(context, {}, flags, size, host, errcode_ret);
}

cl_mem clCreateBufferWithProperties(cl_context context, const cl_mem_properties* properties,
                                    cl_mem_flags flags, std::size_t size, void* host, cl_int* errcode_ret) {
  // None is defined by the standard; those of extensions speak of memory of the client's machine.
  if (properties && *properties) return fail(errcode_ret, CL_INVALID_PROPERTY);
  std::vector<cl_mem_properties> given;
  if (properties) given.push_back(0);
  return make_buffer(context, std::move(given), flags, size, host, errcode_ret);
}

cl_mem clCreateSubBuffer(cl_mem buffer, cl_mem_flags flags, cl_buffer_create_type type, const void* region,
                         cl_int* errcode_ret) {
  const auto* const parent = find<memory_info>(buffer);
  if (!parent || parent->type != CL_MEM_OBJECT_BUFFER || parent->parent.get())
    return fail(errcode_ret, CL_INVALID_MEM_OBJECT);
  if (type != CL_BUFFER_CREATE_TYPE_REGION || !region || check_flags(flags, access_flags | host_access_flags))
    return fail(errcode_ret, CL_INVALID_VALUE);
  const cl_mem_flags own_access = flags & access_flags, parents = parent->flags & access_flags;
  if (own_access && parents != CL_MEM_READ_WRITE && own_access != parents)
    return fail(errcode_ret, CL_INVALID_VALUE);
  const cl_mem_flags own_host = flags & host_access_flags, parents_host = parent->flags & host_access_flags;
  if (own_host && parents_host && own_host != CL_MEM_HOST_NO_ACCESS && own_host != parents_host)
    return fail(errcode_ret, CL_INVALID_VALUE);
  cl_buffer_region part;
  std::memcpy(&part, region, sizeof part);
  if (part.size == 0) return fail(errcode_ret, CL_INVALID_BUFFER_SIZE);
  if (part.origin > parent->size || part.size > parent->size - part.origin)
    return fail(errcode_ret, CL_INVALID_VALUE);
  const auto& devices = find<context_info>(parent->context.get())->devices;
  const bool aligned = std::any_of(devices.begin(), devices.end(), [&](cl_device_id device) {
    const auto bits = find<device_info>(device)->number<cl_uint>(CL_DEVICE_MEM_BASE_ADDR_ALIGN);
    return bits < 8 || part.origin % (bits / 8) == 0;
  });
  if (!aligned) return fail(errcode_ret, CL_MISALIGNED_SUB_BUFFER_OFFSET);
  auto info = std::make_unique<memory_info>();
  info->context = parent->context;
  info->parent = needed(buffer);
  info->flags = (own_access ? own_access : parents) | (own_host ? own_host : parents_host) |
                (parent->flags & pointer_flags);
  info->size = part.size;
  info->origin = part.origin;
  if (parent->host) info->host = parent->host + part.origin;
  info->shared = parent->shared;
  return create<cl_mem>(std::move(info), errcode_ret, [&](std::uint64_t id) {
    return post_body(opcode::clCreateSubBuffer,
                     marshal::opencl::sub_buffer_body{id, id_of(buffer), flags, part.origin, part.size});
  });
}

cl_int clRetainMemObject(cl_mem memory) { return retain(memory); }
cl_int clReleaseMemObject(cl_mem memory) { return release(memory); }

cl_int clGetMemObjectInfo(cl_mem memory, cl_mem_info name, std::size_t size, void* value,
                          std::size_t* wanted) {
  auto* const info = find<memory_info>(memory);
  if (!info) return CL_INVALID_MEM_OBJECT;
  const asked to{size, value, wanted};
  switch (name) {
    case CL_MEM_TYPE:
      return to.one(info->type);
    case CL_MEM_FLAGS:
      return to.one(info->flags);
    case CL_MEM_SIZE:
      return to.one(info->size);
    case CL_MEM_HOST_PTR:
      return to.one(static_cast<void*>(info->host));
    case CL_MEM_MAP_COUNT: {
      const std::lock_guard lock(info->mutex);
      return to.one(static_cast<cl_uint>(info->mappings.size()));
    }
    case CL_MEM_REFERENCE_COUNT:
      return to.one(references(memory));
    case CL_MEM_CONTEXT:
      return to.one(info->context.get());
    case CL_MEM_ASSOCIATED_MEMOBJECT:
      return to.one(info->parent.get());
    case CL_MEM_OFFSET:
      return to.one(info->origin);
    case CL_MEM_USES_SVM_POINTER:
      return to.one(cl_bool{info->shared});
    case CL_MEM_PROPERTIES:
      return to.list(info->properties);
    default:
      return CL_INVALID_VALUE;
  }
}

cl_int clSetMemObjectDestructorCallback(cl_mem memory, void(CL_CALLBACK* pfn_notify)(cl_mem, void*),
                                        void* user_data) {
  auto* const info = find<memory_info>(memory);
  if (!info) return CL_INVALID_MEM_OBJECT;
  if (!pfn_notify) return CL_INVALID_VALUE;
  info->at_end.add([=] { pfn_notify(memory, user_data); });
  return CL_SUCCESS;
}

}  // namespace outboard::frontend::opencl::ends
