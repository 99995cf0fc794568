// Reads and writes of buffers. The client's memory is elsewhere: bytes to write are kept until the device has
// them, bytes that were read leave before a reply says that they are there.
#include <memory>

#include "backend/opencl/ends.hh"
#include "backend/opencl/questions.hh"

namespace outboard::backend::opencl {
namespace {

using namespace marshal::opencl;
using api::opencl::function_table;

/// The bytes of a place, or nothing where they are more than the buffer has: nothing is allocated for those.
std::optional<std::size_t> bytes_of(const function_table& table, cl_mem memory, const place_body& place) {
  const auto whole = value_of<std::size_t>([&](std::size_t size, void* to, std::size_t* wanted) {
    return table.clGetMemObjectInfo(memory, CL_MEM_SIZE, size, to, wanted);
  });
  if (!whole) return std::nullopt;
  if (place.form == place_form::row)
    return place.size <= *whole ? std::optional<std::size_t>(place.size) : std::nullopt;
  std::size_t bytes = 1;
  if (place.form == place_form::image) {
    bytes = value_of<std::size_t>([&](std::size_t size, void* to, std::size_t* wanted) {
              return table.clGetImageInfo(memory, CL_IMAGE_ELEMENT_SIZE, size, to, wanted);
            }).value_or(0);
    if (bytes == 0) return std::nullopt;
  }
  for (const std::uint64_t n : place.region) {
    if (n == 0 || n > *whole / bytes) return std::nullopt;
    bytes *= n;
  }
  return bytes;
}

/// Bytes that a command of the device still reads: they go when its event has come.
struct kept_bytes {
  std::vector<std::byte> bytes;
  static void CL_CALLBACK drop(cl_event, cl_int, void* kept) { delete static_cast<kept_bytes*>(kept); }
};

constexpr std::size_t no_origin[3] = {};

/// The rows of a box lie one behind the other here.
cl_int enqueue_write(const function_table& table, const native_command& command, cl_mem memory,
                     const place_body& to, const std::byte* from, cl_event* done) {
  if (to.form == place_form::row) {
    return table.clEnqueueWriteBuffer(command.queue, memory, CL_FALSE, to.offset, to.size, from,
                                      command.count(), command.list(), done);
  }
  const std::size_t origin[3] = {to.origin[0], to.origin[1], to.origin[2]};
  const std::size_t region[3] = {to.region[0], to.region[1], to.region[2]};
  if (to.form == place_form::image) {
    return table.clEnqueueWriteImage(command.queue, memory, CL_FALSE, origin, region, 0, 0, from,
                                     command.count(), command.list(), done);
  }
  return table.clEnqueueWriteBufferRect(command.queue, memory, CL_FALSE, origin, no_origin, region,
                                        to.row_pitch, to.slice_pitch, 0, 0, from, command.count(),
                                        command.list(), done);
}

cl_int enqueue_read(const function_table& table, const native_command& command, cl_mem memory,
                    const place_body& from, std::byte* to, cl_event* done) {
  if (from.form == place_form::row) {
    return table.clEnqueueReadBuffer(command.queue, memory, CL_FALSE, from.offset, from.size, to,
                                     command.count(), command.list(), done);
  }
  const std::size_t origin[3] = {from.origin[0], from.origin[1], from.origin[2]};
  const std::size_t region[3] = {from.region[0], from.region[1], from.region[2]};
  if (from.form == place_form::image) {
    return table.clEnqueueReadImage(command.queue, memory, CL_FALSE, origin, region, 0, 0, to,
                                    command.count(), command.list(), done);
  }
  return table.clEnqueueReadBufferRect(command.queue, memory, CL_FALSE, origin, no_origin, region,
                                       from.row_pitch, from.slice_pitch, 0, 0, to, command.count(),
                                       command.list(), done);
}

/// The client's event, if it wants one: `done` is one reference more than the caller's.
cl_int keep_event(call& c, std::uint64_t id, cl_event done, cl_int code, bool& well_formed) {
  if (!id) return code;
  if (code == CL_SUCCESS) own(c).table().clRetainEvent(done);
  well_formed = keep(c, id, done, code).well_formed;
  return code;
}

}  // namespace

namespace ends {

outcome clEnqueueWriteBuffer(call& c) {
  const auto body = marshal::take_body<write_body>(c.body);
  if (!c.body.ok()) return outcome::malformed();
  auto contents = own(c).take_bytes(body.contents, c.body.rest());
  if (!contents) return outcome::malformed();
  const function_table& table = own(c).table();
  const native_command command(c, body.command);
  cl_mem memory = nullptr;
  cl_int code = command.code;
  if (code == CL_SUCCESS) code = resolve(c, body.to.memory, memory);
  if (code == CL_SUCCESS && bytes_of(table, memory, body.to) != contents->size()) code = CL_INVALID_VALUE;
  auto kept = std::make_unique<kept_bytes>(kept_bytes{std::move(*contents)});
  cl_event done = nullptr;
  if (code == CL_SUCCESS) code = enqueue_write(table, command, memory, body.to, kept->bytes.data(), &done);
  bool well_formed = true;
  code = keep_event(c, body.command.event, done, code, well_formed);
  if (code == CL_SUCCESS) {
    if (table.clSetEventCallback(done, CL_COMPLETE, kept_bytes::drop, kept.get()) == CL_SUCCESS) {
      (void)kept.release();
    } else {
      table.clWaitForEvents(1, &done);
    }
    table.clReleaseEvent(done);
  }
  return well_formed ? outcome::answer_code(code) : outcome::malformed();
}

outcome clEnqueueReadBuffer(call& c) {
  read_body body;
  if (!take_all(c, body)) return outcome::malformed();
  const function_table& table = own(c).table();
  const native_command command(c, body.command);
  cl_mem memory = nullptr;
  cl_int code = command.code;
  if (code == CL_SUCCESS) code = resolve(c, body.from.memory, memory);
  const auto size = code == CL_SUCCESS ? bytes_of(table, memory, body.from) : std::nullopt;
  if (code == CL_SUCCESS && !size) code = CL_INVALID_VALUE;
  pending_read read{nullptr, c.header.ticket, {}};
  if (code == CL_SUCCESS) {
    read.bytes.resize(*size);
    code = enqueue_read(table, command, memory, body.from, read.bytes.data(), &read.done);
  }
  bool well_formed = true;
  code = keep_event(c, body.command.event, read.done, code, well_formed);
  if (!well_formed) return outcome::malformed();
  if (code != CL_SUCCESS) {
    if (!body.blocking) own(c).tell_failed(c.header.ticket);
    return outcome::answer_code(code);
  }
  if (!body.blocking) {
    own(c).add_read(std::move(read));
    return outcome::answer_code(CL_SUCCESS);
  }
  session& mine = own(c);
  c.give_up_turn();
  code = table.clWaitForEvents(1, &read.done);
  if (code == CL_SUCCESS) mine.send_bytes(read.ticket, read.bytes);
  table.clReleaseEvent(read.done);
  return outcome::answer_code(code);
}

}  // namespace ends
}  // namespace outboard::backend::opencl
