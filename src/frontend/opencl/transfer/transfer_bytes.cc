#include <algorithm>

#include "frontend/opencl/transfer/transfer.hh"

namespace outboard::frontend::opencl {
namespace {

/// Much goes in parts: the device, the server and the line each work on another one, and what a part needs of
/// memory is at hand from the one before.
constexpr std::uint64_t part = staging_blocks::largest;

parts parts_of(const command& c, const place_body& place, std::uint64_t bytes) {
  return {place, bytes, c.may_be_parted() ? part : bytes};
}

cl_int read_part(marshal::opencl::command_body what, const place_body& from, const landing& land,
                 bool blocking) {
  message m(opcode::clEnqueueReadBuffer);
  marshal::put_body(m.body(), marshal::opencl::read_body{std::move(what), from, blocking});
  return blocking ? m.call({}, &land) : m.post({}, &land);
}

cl_int write_part(marshal::opencl::command_body what, const place_body& to, const landing& from) {
  std::vector<std::byte> rows;
  std::span<const std::byte> bytes(from.to, from.size);
  if (from.row) bytes = rows = gather(from);
  sent_bytes contents;
  if (const cl_int code = send_bytes(bytes, contents); code != CL_SUCCESS) return code;
  return post_body(opcode::clEnqueueWriteBuffer,
                   marshal::opencl::write_body{std::move(what), to, contents.about}, contents.rest);
}

}  // namespace

cl_int read_into(marshal::opencl::command_body what, const place_body& from, const area_place& into,
                 bool blocking) {
  message m(service::read_into);
  marshal::put_body(m.body(), marshal::opencl::read_into_body{{std::move(what), from, blocking}, into});
  return blocking ? m.call() : m.post();
}

cl_int write_from(marshal::opencl::command_body what, const place_body& to, const area_place& from,
                  std::uint64_t size) {
  return post_body(service::write_from, marshal::opencl::write_from_body{std::move(what), to, from, size});
}

landing rows_of(const box& b, const void* ptr, const std::size_t* region) {
  landing rows = row_of(static_cast<const std::byte*>(ptr) + b.first, b.bytes);
  if (b.extent == b.bytes) return rows;
  rows.row = region[0], rows.pitch = b.row, rows.rows = region[1], rows.slice = b.slice;
  return rows;
}

landing part_of(const landing& whole, std::uint64_t offset, std::uint64_t size) {
  landing some = whole;
  some.to = whole.run_at(static_cast<std::size_t>(offset), 1).data();
  some.size = static_cast<std::size_t>(size);
  return some;
}

std::vector<std::byte> gather(const landing& from) {
  std::vector<std::byte> rows;
  rows.reserve(from.size);
  while (rows.size() < from.size) {
    const std::span<std::byte> run = from.run_at(rows.size(), from.size - rows.size());
    rows.insert(rows.end(), run.begin(), run.end());
  }
  return rows;
}

cl_int read(command& c, const place_body& from, const landing& land, bool blocking) {
  // Without posts every read is waited for.
  blocking = blocking || link::instance().synchronous();
  const parts all = parts_of(c, from, land.size);
  std::uint64_t next = 0;
  cl_int code = blocking ? read_through(c, all, land, next) : CL_SUCCESS;
  bool moved = false;
  if (code == CL_SUCCESS && next == 0 && blocking) code = read_streamed(c, from, land, moved);
  if (moved) next = all.count();
  if (code == CL_SUCCESS && next == 0 && land.size <= 2 * part)
    code = read_part(c.body(), from, land, blocking), next = all.count();
  for (; next < all.count() && code == CL_SUCCESS; ++next) {
    const bool last = next + 1 == all.count();
    const landing here = part_of(land, all.offset(next), all.length(next));
    code = read_part(c.body(next == 0, last), all.place(next), here, blocking && last);
  }
  return c.done(code);
}

cl_int write(command& c, const place_body& to, const landing& from) {
  const parts all = parts_of(c, to, from.size);
  std::uint64_t next = 0;
  cl_int code = write_through(c, all, from, next);
  bool moved = false;
  if (code == CL_SUCCESS && next == 0) code = write_streamed(c, to, from, moved);
  if (moved) next = all.count();
  if (code == CL_SUCCESS && next == 0 && from.size <= 2 * part)
    code = write_part(c.body(), to, from), next = all.count();
  for (; next < all.count() && code == CL_SUCCESS; ++next) {
    code = write_part(c.body(next == 0, next + 1 == all.count()), all.place(next),
                      part_of(from, all.offset(next), all.length(next)));
  }
  return c.done(code);
}

cl_int read_there(command& c, const place_body& from, const area_place& into, bool blocking) {
  return c.done(read_into(c.body(), from, into, blocking));
}

cl_int write_there(command& c, const place_body& to, const area_place& from, std::uint64_t size) {
  return c.done(write_from(c.body(), to, from, size));
}

bool still_come_to(std::span<const std::byte> memory) {
  session* const server = link::instance().server();
  return server && server->lands_in(memory);
}

/// Memory of ours that shows a part of a buffer, at an aligned address.
std::byte* make_room(mapping& m) {
  m.own = std::make_unique_for_overwrite<std::byte[]>(m.size + map_alignment);
  const auto address = reinterpret_cast<std::uintptr_t>(m.own.get());
  return m.own.get() + (map_alignment - address % map_alignment) % map_alignment;
}

}  // namespace outboard::frontend::opencl
