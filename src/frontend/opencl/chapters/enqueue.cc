// Commands that move no bytes of the program.
#include "frontend/opencl/command.hh"
#include "frontend/opencl/ends.hh"
#include "frontend/opencl/launch_shape.hh"

namespace outboard::frontend::opencl::ends {
namespace {

bool inside(const memory_info& memory, std::size_t offset, std::size_t size) {
  return marshal::opencl::lies_inside(memory.size, offset, size);
}

/// The buffer itself, where this one is a part of another.
cl_mem root_of(cl_mem memory, std::size_t& offset) {
  const auto* const info = find<memory_info>(memory);
  offset += info->origin;
  return info->parent.get() ? info->parent.get() : memory;
}

cl_int check_buffer(const command& c, cl_mem memory) {
  if (const cl_int code = c.check(memory); code != CL_SUCCESS) return code;
  return find<memory_info>(memory)->type == CL_MEM_OBJECT_BUFFER ? CL_SUCCESS : CL_INVALID_MEM_OBJECT;
}

}  // namespace

cl_int clEnqueueFillBuffer(cl_command_queue queue, cl_mem buffer, const void* pattern,
                           std::size_t pattern_size, std::size_t offset, std::size_t size, cl_uint count,
                           const cl_event* waits, cl_event* event) {
  command c(queue, count, waits, event, CL_COMMAND_FILL_BUFFER);
  if (c.code() != CL_SUCCESS) return c.code();
  if (const cl_int code = check_buffer(c, buffer); code != CL_SUCCESS) return code;
  const bool sized = pattern_size && pattern_size <= 128 && (pattern_size & (pattern_size - 1)) == 0;
  if (!pattern || !sized || !inside(*find<memory_info>(buffer), offset, size) || size == 0 ||
      offset % pattern_size || size % pattern_size)
    return CL_INVALID_VALUE;
  return c.done(remote<opcode::clEnqueueFillBuffer>(c.event(), queue, buffer, pattern, pattern_size, offset,
                                                    size, count, wire_list(waits, count).data(), event));
}

cl_int clEnqueueCopyBuffer(cl_command_queue queue, cl_mem from, cl_mem to, std::size_t from_offset,
                           std::size_t to_offset, std::size_t size, cl_uint count, const cl_event* waits,
                           cl_event* event) {
  command c(queue, count, waits, event, CL_COMMAND_COPY_BUFFER);
  if (c.code() != CL_SUCCESS) return c.code();
  if (const cl_int code = check_buffer(c, from); code != CL_SUCCESS) return code;
  if (const cl_int code = check_buffer(c, to); code != CL_SUCCESS) return code;
  if (size == 0 || !inside(*find<memory_info>(from), from_offset, size) ||
      !inside(*find<memory_info>(to), to_offset, size))
    return CL_INVALID_VALUE;
  std::size_t a = from_offset, b = to_offset;
  if (root_of(from, a) == root_of(to, b) && a < b + size && b < a + size) return CL_MEM_COPY_OVERLAP;
  return c.done(remote<opcode::clEnqueueCopyBuffer>(c.event(), queue, from, to, from_offset, to_offset, size,
                                                    count, wire_list(waits, count).data(), event));
}

/// Boxes that may overlap are the device's to judge: then the answer is waited for.
cl_int clEnqueueCopyBufferRect(cl_command_queue queue, cl_mem from, cl_mem to, const std::size_t* from_origin,
                               const std::size_t* to_origin, const std::size_t* region, std::size_t from_row,
                               std::size_t from_slice, std::size_t to_row, std::size_t to_slice,
                               cl_uint count, const cl_event* waits, cl_event* event) {
  command c(queue, count, waits, event, CL_COMMAND_COPY_BUFFER_RECT);
  if (c.code() != CL_SUCCESS) return c.code();
  if (const cl_int code = check_buffer(c, from); code != CL_SUCCESS) return code;
  if (const cl_int code = check_buffer(c, to); code != CL_SUCCESS) return code;
  box a, b;
  if (!a.set(from_origin, region, from_row, from_slice) || !b.set(to_origin, region, to_row, to_slice) ||
      !inside(*find<memory_info>(from), a.first, a.extent) ||
      !inside(*find<memory_info>(to), b.first, b.extent))
    return CL_INVALID_VALUE;
  std::size_t x = a.first, y = b.first;
  if (root_of(from, x) == root_of(to, y) && x < y + b.extent && y < x + a.extent) return CL_MEM_COPY_OVERLAP;
  return c.done(remote<opcode::clEnqueueCopyBufferRect>(c.event(), queue, from, to, from_origin, to_origin,
                                                        region, a.row, a.slice, b.row, b.slice, count,
                                                        wire_list(waits, count).data(), event));
}

cl_int clEnqueueMigrateMemObjects(cl_command_queue queue, cl_uint objects, const cl_mem* list,
                                  cl_mem_migration_flags flags, cl_uint count, const cl_event* waits,
                                  cl_event* event) {
  command c(queue, count, waits, event, CL_COMMAND_MIGRATE_MEM_OBJECTS);
  if (c.code() != CL_SUCCESS) return c.code();
  constexpr cl_mem_migration_flags known =
      CL_MIGRATE_MEM_OBJECT_HOST | CL_MIGRATE_MEM_OBJECT_CONTENT_UNDEFINED;
  if (objects == 0 || !list || (flags & ~known) != 0) return CL_INVALID_VALUE;
  for (cl_uint i = 0; i < objects; ++i) {
    if (const cl_int code = c.check(list[i]); code != CL_SUCCESS) return code;
  }
  return c.done(remote<opcode::clEnqueueMigrateMemObjects>(c.event(), queue, objects,
                                                           wire_list(list, objects).data(), flags, count,
                                                           wire_list(waits, count).data(), event));
}

cl_int clEnqueueNDRangeKernel(cl_command_queue queue, cl_kernel kernel, cl_uint dimensions,
                              const std::size_t* offset, const std::size_t* global, const std::size_t* local,
                              cl_uint count, const cl_event* waits, cl_event* event) {
  command c(queue, count, waits, event, CL_COMMAND_NDRANGE_KERNEL);
  auto* const info = find<kernel_info>(kernel);
  if (c.code() == CL_INVALID_COMMAND_QUEUE) return c.code();
  if (!info) return CL_INVALID_KERNEL;
  if (info->context.get() != c.context()) return CL_INVALID_CONTEXT;
  if (c.code() != CL_SUCCESS) return c.code();
  const shape_check shape = check_shape(*info, c.device(), dimensions, offset, global, local);
  if (shape.code != CL_SUCCESS) return shape.code;
  {
    const std::lock_guard lock(info->mutex);
    if (std::count(info->given.begin(), info->given.end(), std::size_t{0})) return CL_INVALID_KERNEL_ARGS;
  }
  const std::uint64_t made = c.event();
  const wire_list wire_waits(waits, count);
  if (shape.certain) {
    return c.done(remote<opcode::clEnqueueNDRangeKernel>(made, queue, kernel, dimensions, offset, global,
                                                         local, count, wire_waits.data(), event));
  }
  // The device's word decides: the same request, waited for.
  message m(opcode::clEnqueueNDRangeKernel);
  marshal::encode_request<opcode::clEnqueueNDRangeKernel>(m.body(), made, wire::handle{id_of(queue)},
                                                          wire::handle{id_of(kernel)}, dimensions, offset,
                                                          global, local, count, wire_waits.data(), event);
  return c.done(m.call());
}

cl_int clEnqueueTask(cl_command_queue queue, cl_kernel kernel, cl_uint count, const cl_event* waits,
                     cl_event* event) {
  const std::size_t one = 1;
  return ends::clEnqueueNDRangeKernel(queue, kernel, 1, nullptr, &one, &one, count, waits, event);
}

/// A function of the program cannot run on the device's host; no device says that it could.
cl_int clEnqueueNativeKernel(cl_command_queue queue, void(CL_CALLBACK*)(void*), void*, std::size_t, cl_uint,
                             const cl_mem*, const void**, cl_uint, const cl_event*, cl_event*) {
  return alive(queue) ? CL_INVALID_OPERATION : CL_INVALID_COMMAND_QUEUE;
}

cl_int clEnqueueMarkerWithWaitList(cl_command_queue queue, cl_uint count, const cl_event* waits,
                                   cl_event* event) {
  command c(queue, count, waits, event, CL_COMMAND_MARKER);
  return c.code() == CL_SUCCESS ? c.mark() : c.code();
}

cl_int clEnqueueBarrierWithWaitList(cl_command_queue queue, cl_uint count, const cl_event* waits,
                                    cl_event* event) {
  command c(queue, count, waits, event, CL_COMMAND_BARRIER);
  if (c.code() != CL_SUCCESS) return c.code();
  return c.done(remote<opcode::clEnqueueBarrierWithWaitList>(c.event(), queue, count,
                                                             wire_list(waits, count).data(), event));
}

cl_int clEnqueueMarker(cl_command_queue queue, cl_event* event) {
  if (!alive(queue)) return CL_INVALID_COMMAND_QUEUE;
  return event ? ends::clEnqueueMarkerWithWaitList(queue, 0, nullptr, event) : CL_INVALID_VALUE;
}

cl_int clEnqueueWaitForEvents(cl_command_queue queue, cl_uint count, const cl_event* events) {
  if (!alive(queue)) return CL_INVALID_COMMAND_QUEUE;
  if (count == 0 || !events) return CL_INVALID_VALUE;
  const cl_int code = ends::clEnqueueBarrierWithWaitList(queue, count, events, nullptr);
  return code == CL_INVALID_EVENT_WAIT_LIST ? CL_INVALID_EVENT : code;
}

cl_int clEnqueueBarrier(cl_command_queue queue) {
  return ends::clEnqueueBarrierWithWaitList(queue, 0, nullptr, nullptr);
}

}  // namespace outboard::frontend::opencl::ends
