// Reads and writes of buffers, images and shared memory. The client's memory is elsewhere: bytes to write are
// kept until the device has them, bytes that were read leave before a reply says that they are there.
#include <memory>

#include "backend/opencl/command_work.hh"
#include "backend/opencl/ends.hh"
#include "backend/opencl/places.hh"
#include "backend/opencl/questions.hh"
#include "backend/opencl/short_wait.hh"
#include "backend/session/session_core.hh"

namespace outboard::backend::opencl {
namespace {

using namespace marshal::opencl;
using api::opencl::function_table;

/// The memory object of a place, where it has one, and its bytes. CL_SUCCESS or what is wrong with it.
cl_int resolve_place(call& c, const place_body& place, cl_mem& memory, std::size_t& bytes) {
  const function_table& table = own(c).table();
  bytes = place.size;
  if (place.form == place_form::shared) {
    if (!table.clEnqueueSVMMemcpy) return CL_INVALID_OPERATION;
    return own(c).shared().holds(place.offset, place.size) ? CL_SUCCESS : CL_INVALID_VALUE;
  }
  if (const cl_int code = resolve(c, place.memory, memory); code != CL_SUCCESS) return code;
  const std::size_t origin[3] = {place.origin[0], place.origin[1], place.origin[2]};
  const std::size_t region[3] = {place.region[0], place.region[1], place.region[2]};
  switch (place.form) {
    case place_form::row:
      return check_row(table, memory, place.offset, place.size);
    case place_form::box: {
      box rows;
      const cl_int code = check_box(table, memory, origin, region, place.row_pitch, place.slice_pitch, rows);
      bytes = rows.bytes;
      return code;
    }
    case place_form::image:
      return check_region(table, memory, origin, region, bytes);
    default:
      return CL_INVALID_VALUE;
  }
}

/// nullptr: there is no such queue.
cl_context context_of(call& c, cl_command_queue queue) {
  if (!queue) return nullptr;
  return value_of<cl_context>([&](std::size_t size, void* to, std::size_t* wanted) {
           return own(c).table().clGetCommandQueueInfo(queue, CL_QUEUE_CONTEXT, size, to, wanted);
         })
      .value_or(nullptr);
}

constexpr std::size_t no_origin[3] = {};

/// The way of the bytes: the functions of a row, a box and an image take the same places either way.
struct to_device {
  const std::byte* host;
  static constexpr bool writes = true;
  static constexpr auto row = &function_table::clEnqueueWriteBuffer;
  static constexpr auto box = &function_table::clEnqueueWriteBufferRect;
  static constexpr auto image = &function_table::clEnqueueWriteImage;
  const void* from(void*) const { return host; }
  void* to(void* device) const { return device; }
};
struct to_host {
  std::byte* host;
  static constexpr bool writes = false;
  static constexpr auto row = &function_table::clEnqueueReadBuffer;
  static constexpr auto box = &function_table::clEnqueueReadBufferRect;
  static constexpr auto image = &function_table::clEnqueueReadImage;
  const void* from(void* device) const { return device; }
  void* to(void*) const { return host; }
};

/// The rows of a box lie one behind the other here.
template <class Way>
cl_int enqueue(const function_table& table, const native_command& command, cl_mem memory,
               const place_body& place, Way way, cl_event* done) {
  if (place.form == place_form::row) {
    return (table.*Way::row)(command.queue, memory, CL_FALSE, place.offset, place.size, way.host,
                             command.count(), command.list(), done);
  }
  if (place.form == place_form::shared) {
    auto* const at = reinterpret_cast<void*>(place.offset);
    return table.clEnqueueSVMMemcpy(command.queue, CL_FALSE, way.to(at), way.from(at), place.size,
                                    command.count(), command.list(), done);
  }
  const std::size_t origin[3] = {place.origin[0], place.origin[1], place.origin[2]};
  const std::size_t region[3] = {place.region[0], place.region[1], place.region[2]};
  if (place.form == place_form::image) {
    return (table.*Way::image)(command.queue, memory, CL_FALSE, origin, region, 0, 0, way.host,
                               command.count(), command.list(), done);
  }
  return (table.*Way::box)(command.queue, memory, CL_FALSE, origin, no_origin, region, place.row_pitch,
                           place.slice_pitch, 0, 0, way.host, command.count(), command.list(), done);
}

/// The same, for a profile too, which shows the bytes as the client's: in memory of its own.
template <class Way>
cl_int give(call& c, const native_command& command, cl_mem memory, const place_body& place, std::size_t size,
            Way way, cl_event* done) {
  command_records& records = own(c).records();
  const std::uint64_t since = records.about_to_give();
  const cl_int code = enqueue(own(c).table(), command, memory, place, way, done);
  if (since == 0 || code != CL_SUCCESS) return code;
  const auto there = place.form == place_form::image ? api::memory_side::array : api::memory_side::device;
  const auto here = api::memory_side::pageable;
  records.given(since, command.queue, *done,
                copy_of(Way::writes ? here : there, Way::writes ? there : here, size, c.header.ticket));
  return code;
}

/// A write whose bytes lie in this process; those of an area (or null) from this offset on.
outcome write(call& c, const command_body& about, const native_command& command, const place_body& to,
              host_bytes bytes, transfer_area* area = nullptr, std::uint64_t offset = 0) {
  cl_mem memory = nullptr;
  std::size_t size = 0;
  cl_int code = command.code;
  if (code == CL_SUCCESS) code = resolve_place(c, to, memory, size);
  if (code == CL_SUCCESS && size != bytes.size) code = CL_INVALID_VALUE;
  cl_event done = nullptr;
  if (code == CL_SUCCESS) code = give(c, command, memory, to, size, to_device{bytes.data}, &done);
  if (area) area->used(offset, done, code);
  const bool well_formed = given(c, command, about.event, done, code);
  if (code == CL_SUCCESS) own(c).keep(command.queue, done, std::move(bytes.owner));
  return well_formed ? outcome::answer(code) : outcome::malformed();
}

/// A read, of bytes that travel unless there is an area for them.
outcome read(call& c, const read_body& body, const area_place& into) {
  session& mine = own(c);
  // Parts before this one travel while the device copies it.
  body.blocking ? mine.send_finished_reads() : mine.look_at_reads();
  const function_table& table = mine.table();
  const native_command command(c, body.command);
  cl_mem memory = nullptr;
  std::size_t size = 0;
  cl_int code = command.code;
  if (code == CL_SUCCESS) code = resolve_place(c, body.from, memory, size);
  pending_read read{nullptr, c.header.ticket, {}};
  const bool travels = into.area == 0;
  const auto area = travels ? nullptr : mine.areas().find(into.area);
  if (code == CL_SUCCESS && travels) read.bytes = mine.blocks().take(context_of(c, command.queue), size);
  if (code == CL_SUCCESS && !travels) {
    auto place = bytes_in(area, into.offset, size);
    if (!place) return outcome::malformed();
    read.bytes = std::move(*place);
  }
  if (code == CL_SUCCESS)
    code = give(c, command, memory, body.from, size, to_host{read.bytes.data}, &read.done);
  if (area) area->used(into.offset, read.done, code);
  if (!given(c, command, body.command.event, read.done, code)) {
    // The device fills the bytes all the same.
    if (code == CL_SUCCESS) mine.keep(command.queue, read.done, std::move(read.bytes.owner));
    return outcome::malformed();
  }
  if (code != CL_SUCCESS) {
    if (!body.blocking && travels) mine.add_read({nullptr, c.header.ticket, {}}), mine.look_at_reads();
    return outcome::answer(code);
  }
  if (!body.blocking) {
    if (travels) {
      mine.add_read(std::move(read));
    } else {
      mine.keep(command.queue, read.done, std::move(read.bytes.owner));
    }
    return outcome::answer(CL_SUCCESS);
  }
  if (!complete_soon(c, {&read.done, 1})) c.give_up_turn();
  code = table.clWaitForEvents(1, &read.done);
  if (code == CL_SUCCESS && travels) mine.send_read(c, {read.bytes.data, read.bytes.size});
  table.clReleaseEvent(read.done);
  return outcome::answer(code);
}

}  // namespace

namespace ends {

outcome clEnqueueWriteBuffer(call& c) {
  const auto body = marshal::take_body<write_body>(c.body);
  if (!c.body.ok()) return outcome::malformed();
  const native_command command(c, body.command);
  auto contents = own(c).take_bytes_for(context_of(c, command.queue), body.contents, c.body.rest());
  return contents ? write(c, body.command, command, body.to, std::move(*contents)) : outcome::malformed();
}

outcome write_from(call& c) {
  write_from_body body;
  if (!take_all(c, body)) return outcome::malformed();
  const auto area = own(c).areas().find(body.from.area);
  auto contents = bytes_in(area, body.from.offset, body.size);
  if (!contents) return outcome::malformed();
  return write(c, body.command, native_command(c, body.command), body.to, std::move(*contents), area.get(),
               body.from.offset);
}

outcome clEnqueueReadBuffer(call& c) {
  read_body body;
  return take_all(c, body) ? read(c, body, {}) : outcome::malformed();
}

outcome read_into(call& c) {
  read_into_body body;
  return take_all(c, body) && body.into.area ? read(c, body.read, body.into) : outcome::malformed();
}

/// The client sent the bytes before it asked.
outcome write_piece(call& c) {
  write_piece_body body;
  if (!take_all(c, body)) return outcome::malformed();
  const auto came = c.core.data().take(body.context, body.number);
  if (!came) return outcome::answer(CL_OUT_OF_RESOURCES);
  const native_command command(c, body.command);
  const outcome done = write(c, body.command, command, body.to, static_cast<moved_piece&>(*came).release());
  // Nobody may wait for it, and its memory is wanted for the next ones.
  if (command.code == CL_SUCCESS) own(c).table().clFlush(command.queue);
  return done;
}

/// The client hears of a failure where it waits for the bytes, and not once more.
outcome read_piece(call& c) {
  read_piece_body body;
  if (!take_all(c, body)) return outcome::malformed();
  session& mine = own(c);
  const native_command command(c, body.command);
  cl_mem memory = nullptr;
  std::size_t size = 0;
  cl_int code = command.code;
  if (code == CL_SUCCESS) code = resolve_place(c, body.from, memory, size);
  if (code == CL_SUCCESS && size > marshal::max_data_piece) code = CL_INVALID_VALUE;
  host_bytes block;
  cl_event done = nullptr;
  if (code == CL_SUCCESS) block = mine.blocks().take(context_of(c, command.queue), size);
  if (code == CL_SUCCESS) code = give(c, command, memory, body.from, size, to_host{block.data}, &done);
  const std::uint64_t event = body.command.event;
  const bool well_formed = code == CL_SUCCESS ? given(c, command, event, done, code)
                                              : event == 0 || keep(c, event, done, code).well_formed;
  std::unique_ptr<data_piece> piece;
  if (code == CL_SUCCESS) piece = std::make_unique<moved_piece>(std::move(block), &mine, command.queue, done);
  const bool sent = c.core.data().send(body.connection, body.number, piece, code, body.pace);
  if (!well_formed) return outcome::malformed();
  return outcome::answer(sent ? CL_SUCCESS : CL_INVALID_VALUE);
}

}  // namespace ends
}  // namespace outboard::backend::opencl
