// Commands that move bytes of the program: reads, writes, maps. A write takes its bytes along at once, so
// that it need not wait; a read's bytes come by themselves, before whatever tells the program that they are
// there.
#include "frontend/opencl/transfer/transfer.hh"
#include "frontend/opencl/answer.hh"
#include "frontend/opencl/shared_book.hh"

#include "frontend/opencl/ends.hh"

namespace outboard::frontend::opencl::ends {
namespace {

using marshal::opencl::place_body;

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
  place.form = marshal::opencl::place_form::box;
  std::copy_n(origin, 3, place.origin);
  std::copy_n(region, 3, place.region);
  place.row_pitch = in_memory.row;
  place.slice_pitch = in_memory.slice;
  return CL_SUCCESS;
}

/// What reads and writes of a row check alike; `move` has its place then.
template <class Move>
cl_int move_row(const command& c, cl_mem buffer, std::size_t offset, std::size_t size, cl_mem_flags refused,
                const void* ptr, Move&& move) {
  if (c.code() != CL_SUCCESS) return c.code();
  place_body place;
  if (const cl_int code = check_row(c, buffer, offset, size, refused, place); code) return code;
  return ptr ? move(place) : CL_INVALID_VALUE;
}

/// One end of a box: where it begins, and its pitches.
struct box_end {
  const std::size_t* origin;
  std::size_t row, slice;
};

/// The same of boxes, with the rows of the program's memory.
template <class Move>
cl_int move_box(const command& c, cl_mem buffer, const box_end& in_buffer, const box_end& in_memory,
                const std::size_t* region, cl_mem_flags refused, const void* ptr, Move&& move) {
  if (c.code() != CL_SUCCESS) return c.code();
  box there, here;
  if (!ptr || !there.set(in_buffer.origin, region, in_buffer.row, in_buffer.slice) ||
      !here.set(in_memory.origin, region, in_memory.row, in_memory.slice))
    return CL_INVALID_VALUE;
  place_body place;
  if (const cl_int code = check_box(c, buffer, in_buffer.origin, region, there, refused, place); code)
    return code;
  return move(place, here);
}

/// Is this memory the back-end's own, too?
bool shows_same_pages(const void* at) {
  const auto block = shared_book::instance().find(at);
  return block && block->same_pages;
}

/// Where all maps of a buffer are, once there were enough of them, is known to `m` then; nullptr: each is on
/// its own.
std::byte* memory_of_maps(memory_info& info, mapping& m) {
  map_memory& maps = info.map;
  const std::lock_guard lock(maps.use);
  const bool known = maps.area || maps.room || maps.refused;
  if (!known && !info.shared) {
    const bool worth = maps.shown >= std::max<std::uint64_t>(info.size, map_memory::least);
    maps.shown += m.size;
    if (!worth) return nullptr;
    maps.area = transfer_area::open(info.context.get(), info.size, 0);
    if (!maps.area) maps.room = map_room::take(info.size);
    maps.refused = !maps.area && !maps.room;
  }
  if (maps.area) return m.in = maps.area->place(m.place.offset), maps.area->at(m.place.offset);
  return maps.room ? maps.room->at(m.place.offset) : nullptr;
}

}  // namespace

cl_int clEnqueueReadBuffer(cl_command_queue queue, cl_mem buffer, cl_bool blocking, std::size_t offset,
                           std::size_t size, void* ptr, cl_uint count, const cl_event* waits,
                           cl_event* event) {
  command c(queue, count, waits, event, CL_COMMAND_READ_BUFFER);
  return move_row(c, buffer, offset, size, no_reads, ptr,
                  [&](const place_body& place) { return read(c, place, row_of(ptr, size), blocking); });
}

cl_int clEnqueueWriteBuffer(cl_command_queue queue, cl_mem buffer, cl_bool, std::size_t offset,
                            std::size_t size, const void* ptr, cl_uint count, const cl_event* waits,
                            cl_event* event) {
  command c(queue, count, waits, event, CL_COMMAND_WRITE_BUFFER);
  return move_row(c, buffer, offset, size, no_writes, ptr,
                  [&](const place_body& place) { return write(c, place, row_of(ptr, size)); });
}

cl_int clEnqueueReadBufferRect(cl_command_queue queue, cl_mem buffer, cl_bool blocking,
                               const std::size_t* buffer_origin, const std::size_t* host_origin,
                               const std::size_t* region, std::size_t buffer_row, std::size_t buffer_slice,
                               std::size_t host_row, std::size_t host_slice, void* ptr, cl_uint count,
                               const cl_event* waits, cl_event* event) {
  command c(queue, count, waits, event, CL_COMMAND_READ_BUFFER_RECT);
  return move_box(c, buffer, {buffer_origin, buffer_row, buffer_slice}, {host_origin, host_row, host_slice},
                  region, no_reads, ptr, [&](const place_body& place, const box& here) {
                    return read(c, place, rows_of(here, ptr, region), blocking);
                  });
}

cl_int clEnqueueWriteBufferRect(cl_command_queue queue, cl_mem buffer, cl_bool,
                                const std::size_t* buffer_origin, const std::size_t* host_origin,
                                const std::size_t* region, std::size_t buffer_row, std::size_t buffer_slice,
                                std::size_t host_row, std::size_t host_slice, const void* ptr, cl_uint count,
                                const cl_event* waits, cl_event* event) {
  command c(queue, count, waits, event, CL_COMMAND_WRITE_BUFFER_RECT);
  return move_box(c, buffer, {buffer_origin, buffer_row, buffer_slice}, {host_origin, host_row, host_slice},
                  region, no_writes, ptr, [&](const place_body& place, const box& here) {
                    return write(c, place, rows_of(here, ptr, region));
                  });
}

void* clEnqueueMapBuffer(cl_command_queue queue, cl_mem buffer, cl_bool blocking, cl_map_flags flags,
                         std::size_t offset, std::size_t size, cl_uint count, const cl_event* waits,
                         cl_event* event, cl_int* errcode_ret) {
  command c(queue, count, waits, event, CL_COMMAND_MAP_BUFFER);
  if (c.code() != CL_SUCCESS) return fail(errcode_ret, c.code());
  if (!map_flags_fit(flags)) return fail(errcode_ret, CL_INVALID_VALUE);
  const cl_mem_flags refused = refused_by(flags);
  place_body place;
  if (const cl_int code = check_row(c, buffer, offset, size, refused, place); code)
    return fail(errcode_ret, code);
  auto& info = *find<memory_info>(buffer);
  mapping m;
  m.place = place, m.size = size, m.flags = flags, m.waited = blocking;
  m.at = info.host ? info.host + offset : memory_of_maps(info, m);
  if (!m.at) m.at = make_room(m);
  // What will be overwritten as a whole is not fetched: its first byte stands for the order of things.
  if (flags & CL_MAP_WRITE_INVALIDATE_REGION) place.size = 1;
  cl_int code = CL_SUCCESS;
  if (info.shared && shows_same_pages(m.at)) {
    // Kernels may be writing there: nothing is put over it, now or when it is unmapped.
    m.flags &= ~map_writes;
    std::byte unseen{};
    place.size = 1;
    code = blocking ? read(c, place, {&unseen, 1}, true) : c.mark();
  } else if (m.in.area) {
    code = read_there(c, place, m.in, blocking);
  } else {
    code = read(c, place, {m.at, static_cast<std::size_t>(place.size)}, blocking);
  }
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
  if (m.in.area) return m.flags & map_writes ? write_there(c, m.place, m.in, m.size) : c.mark();
  landing rows = row_of(m.at, m.size);
  if (m.row) {
    box b;
    // As wide as sizes of this end: the program gave them.
    std::size_t region[3];
    std::copy_n(m.place.region, 3, region);
    region[0] *= static_cast<std::size_t>(info.made.element_size);
    if (!b.set(no_origin, region, m.row, m.slice)) return CL_OUT_OF_RESOURCES;
    rows = rows_of(b, m.at, region);
  }
  const bool changed = (m.flags & map_writes) && (m.waited || !still_come_to(rows.extent()));
  const cl_int code = changed ? write(c, m.place, rows) : c.mark();
  if (!m.waited && m.own) {
    const std::lock_guard lock(info.mutex);
    if (session* const server = link::instance().server())
      info.late.keep(std::move(m.own), rows.extent(), *server);
  }
  return code;
}

}  // namespace outboard::frontend::opencl::ends
