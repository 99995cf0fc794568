// Commands that move bytes of the program: reads, writes, maps. A write takes its bytes along at once, so
// that it need not wait; a read's bytes come by themselves, before whatever tells the program that they are
// there.
#include "frontend/opencl/answer.hh"
#include "frontend/opencl/command.hh"
#include "frontend/opencl/ends.hh"
#include "frontend/opencl/launch_shape.hh"

namespace outboard::frontend::opencl::ends {
namespace {

using marshal::opencl::place_body;

/// CL_MAP_* that ask for the buffer's bytes, or promise to change them.
constexpr cl_map_flags map_known = CL_MAP_READ | CL_MAP_WRITE | CL_MAP_WRITE_INVALIDATE_REGION;
constexpr cl_map_flags map_writes = CL_MAP_WRITE | CL_MAP_WRITE_INVALIDATE_REGION;
/// As a device aligns what it maps: for any type of the language.
constexpr std::size_t map_alignment = 128;

/// A part of a buffer that a command names. `refused`: the host's access that the buffer's flags rule out.
cl_int check_row(const command& c, cl_mem memory, std::size_t offset, std::size_t size, cl_mem_flags refused,
                 place_body& place) {
  if (const cl_int code = c.check(memory); code != CL_SUCCESS) return code;
  const auto& info = *find<memory_info>(memory);
  if (info.type != CL_MEM_OBJECT_BUFFER) return CL_INVALID_MEM_OBJECT;
  if (size == 0 || size > info.size || offset > info.size - size) return CL_INVALID_VALUE;
  if (info.flags & refused) return CL_INVALID_OPERATION;
  place.memory = id_of(memory);
  place.offset = offset;
  place.size = size;
  return CL_SUCCESS;
}

cl_int check_box(const command& c, cl_mem memory, const std::size_t* origin, const std::size_t* region,
                 const box& in_memory, cl_mem_flags refused, place_body& place) {
  if (const cl_int code = check_row(c, memory, in_memory.first, in_memory.extent, refused, place); code)
    return code;
  place.box = true;
  std::copy_n(origin, 3, place.origin);
  std::copy_n(region, 3, place.region);
  place.row_pitch = in_memory.row;
  place.slice_pitch = in_memory.slice;
  return CL_SUCCESS;
}

landing landing_of(const box& b, void* ptr, const std::size_t* region) {
  landing land{static_cast<std::byte*>(ptr) + b.first, b.bytes};
  if (b.extent == b.bytes) return land;
  land.row = region[0], land.pitch = b.row, land.rows = region[1], land.slice = b.slice;
  return land;
}

cl_int read(command& c, opcode code, const place_body& from, const landing& land, bool blocking) {
  // Without posts every read is waited for.
  blocking = blocking || link::instance().synchronous();
  const marshal::opencl::read_body body{c.body(), from, blocking};
  message m(code);
  marshal::put_body(m.body(), body);
  return c.done(blocking ? m.call({}, &land) : m.post({}, &land));
}

cl_int write(command& c, const place_body& to, std::span<const std::byte> bytes) {
  sent_bytes contents;
  if (const cl_int code = send_bytes(bytes, contents); code != CL_SUCCESS) return code;
  const marshal::opencl::write_body body{c.body(), to, contents.about};
  return c.done(post_body(opcode::clEnqueueWriteBuffer, body, contents.rest));
}

/// The rows of a box one behind the other.
std::vector<std::byte> gather(const box& b, const void* ptr, const std::size_t* region) {
  std::vector<std::byte> rows;
  rows.reserve(b.bytes);
  const auto* const first = static_cast<const std::byte*>(ptr) + b.first;
  for (std::size_t z = 0; z < region[2]; ++z) {
    for (std::size_t y = 0; y < region[1]; ++y) {
      const auto* const row = first + z * b.slice + y * b.row;
      rows.insert(rows.end(), row, row + region[0]);
    }
  }
  return rows;
}

constexpr cl_mem_flags no_reads = CL_MEM_HOST_WRITE_ONLY | CL_MEM_HOST_NO_ACCESS;
constexpr cl_mem_flags no_writes = CL_MEM_HOST_READ_ONLY | CL_MEM_HOST_NO_ACCESS;

/// Memory of ours that shows a part of a buffer, at an aligned address.
std::byte* make_room(mapping& m) {
  m.own = std::make_unique<std::byte[]>(m.size + map_alignment);
  const auto address = reinterpret_cast<std::uintptr_t>(m.own.get());
  return m.own.get() + (map_alignment - address % map_alignment) % map_alignment;
}

}  // namespace

cl_int clEnqueueReadBuffer(cl_command_queue queue, cl_mem buffer, cl_bool blocking, std::size_t offset,
                           std::size_t size, void* ptr, cl_uint count, const cl_event* waits,
                           cl_event* event) {
  command c(queue, count, waits, event, CL_COMMAND_READ_BUFFER);
  if (c.code() != CL_SUCCESS) return c.code();
  place_body place;
  if (const cl_int code = check_row(c, buffer, offset, size, no_reads, place); code) return code;
  if (!ptr) return CL_INVALID_VALUE;
  return read(c, opcode::clEnqueueReadBuffer, place, {static_cast<std::byte*>(ptr), size}, blocking);
}

cl_int clEnqueueReadBufferRect(cl_command_queue queue, cl_mem buffer, cl_bool blocking,
                               const std::size_t* buffer_origin, const std::size_t* host_origin,
                               const std::size_t* region, std::size_t buffer_row, std::size_t buffer_slice,
                               std::size_t host_row, std::size_t host_slice, void* ptr, cl_uint count,
                               const cl_event* waits, cl_event* event) {
  command c(queue, count, waits, event, CL_COMMAND_READ_BUFFER_RECT);
  if (c.code() != CL_SUCCESS) return c.code();
  box there, here;
  if (!ptr || !there.set(buffer_origin, region, buffer_row, buffer_slice) ||
      !here.set(host_origin, region, host_row, host_slice))
    return CL_INVALID_VALUE;
  place_body place;
  if (const cl_int code = check_box(c, buffer, buffer_origin, region, there, no_reads, place); code)
    return code;
  return read(c, opcode::clEnqueueReadBuffer, place, landing_of(here, ptr, region), blocking);
}

cl_int clEnqueueWriteBuffer(cl_command_queue queue, cl_mem buffer, cl_bool, std::size_t offset,
                            std::size_t size, const void* ptr, cl_uint count, const cl_event* waits,
                            cl_event* event) {
  command c(queue, count, waits, event, CL_COMMAND_WRITE_BUFFER);
  if (c.code() != CL_SUCCESS) return c.code();
  place_body place;
  if (const cl_int code = check_row(c, buffer, offset, size, no_writes, place); code) return code;
  if (!ptr) return CL_INVALID_VALUE;
  return write(c, place, {static_cast<const std::byte*>(ptr), size});
}

cl_int clEnqueueWriteBufferRect(cl_command_queue queue, cl_mem buffer, cl_bool,
                                const std::size_t* buffer_origin, const std::size_t* host_origin,
                                const std::size_t* region, std::size_t buffer_row, std::size_t buffer_slice,
                                std::size_t host_row, std::size_t host_slice, const void* ptr, cl_uint count,
                                const cl_event* waits, cl_event* event) {
  command c(queue, count, waits, event, CL_COMMAND_WRITE_BUFFER_RECT);
  if (c.code() != CL_SUCCESS) return c.code();
  box there, here;
  if (!ptr || !there.set(buffer_origin, region, buffer_row, buffer_slice) ||
      !here.set(host_origin, region, host_row, host_slice))
    return CL_INVALID_VALUE;
  place_body place;
  if (const cl_int code = check_box(c, buffer, buffer_origin, region, there, no_writes, place); code)
    return code;
  return write(c, place, gather(here, ptr, region));
}

void* clEnqueueMapBuffer(cl_command_queue queue, cl_mem buffer, cl_bool blocking, cl_map_flags flags,
                         std::size_t offset, std::size_t size, cl_uint count, const cl_event* waits,
                         cl_event* event, cl_int* errcode_ret) {
  command c(queue, count, waits, event, CL_COMMAND_MAP_BUFFER);
  if (c.code() != CL_SUCCESS) return fail(errcode_ret, c.code());
  if ((flags & ~map_known) != 0 ||
      ((flags & CL_MAP_WRITE_INVALIDATE_REGION) && flags != CL_MAP_WRITE_INVALIDATE_REGION))
    return fail(errcode_ret, CL_INVALID_VALUE);
  const cl_mem_flags refused =
      ((flags & CL_MAP_READ) ? no_reads : 0) | ((flags & map_writes) ? no_writes : 0);
  place_body place;
  if (const cl_int code = check_row(c, buffer, offset, size, refused, place); code)
    return fail(errcode_ret, code);
  auto& info = *find<memory_info>(buffer);
  mapping m{nullptr, offset, size, flags, nullptr};
  m.at = info.host ? info.host + offset : make_room(m);
  const cl_int code = read(c, opcode::clEnqueueReadBuffer, place, {m.at, size}, blocking);
  if (code != CL_SUCCESS) return fail(errcode_ret, code);
  if (errcode_ret) *errcode_ret = CL_SUCCESS;
  const std::lock_guard lock(info.mutex);
  return info.mappings.emplace_back(std::move(m)).at;
}

/// What was mapped to be written goes to the buffer; else there is only an event to give.
cl_int clEnqueueUnmapMemObject(cl_command_queue queue, cl_mem memory, void* mapped, cl_uint count,
                               const cl_event* waits, cl_event* event) {
  command c(queue, count, waits, event, CL_COMMAND_UNMAP_MEM_OBJECT);
  if (c.code() != CL_SUCCESS) return c.code();
  if (const cl_int code = c.check(memory); code != CL_SUCCESS) return code;
  auto& info = *find<memory_info>(memory);
  mapping m;
  {
    const std::lock_guard lock(info.mutex);
    const auto found = std::find_if(info.mappings.begin(), info.mappings.end(),
                                    [mapped](const mapping& each) { return each.at == mapped; });
    if (!mapped || found == info.mappings.end()) return CL_INVALID_VALUE;
    m = std::move(*found);
    info.mappings.erase(found);
  }
  if (m.flags & map_writes) {
    place_body place;
    place.memory = id_of(memory);
    place.offset = m.offset;
    place.size = m.size;
    return write(c, place, {m.at, m.size});
  }
  return c.done(remote<opcode::clEnqueueMarkerWithWaitList>(c.event(), queue, count,
                                                            wire_list(waits, count).data(), event));
}

}  // namespace outboard::frontend::opencl::ends
