#include <algorithm>

#include "frontend/opencl/transfer.hh"

namespace outboard::frontend::opencl {
namespace {

/// Much goes in parts of so many bytes: the device, the server and the line each work on another one, and
/// what a part needs of memory is at hand from the one before.
constexpr std::uint64_t part = 1u << 20;

bool goes_in_parts(const command& c, const place_body& place) {
  return can_be_parted(c, place) && place.size > 2 * part;
}

cl_int read_part(marshal::opencl::command_body what, const place_body& from, const landing& land,
                 bool blocking) {
  message m(opcode::clEnqueueReadBuffer);
  marshal::put_body(m.body(), marshal::opencl::read_body{std::move(what), from, blocking});
  return blocking ? m.call({}, &land) : m.post({}, &land);
}

cl_int write_part(marshal::opencl::command_body what, const place_body& to,
                  std::span<const std::byte> bytes) {
  sent_bytes contents;
  if (const cl_int code = send_bytes(bytes, contents); code != CL_SUCCESS) return code;
  return post_body(opcode::clEnqueueWriteBuffer,
                   marshal::opencl::write_body{std::move(what), to, contents.about}, contents.rest);
}

}  // namespace

bool can_be_parted(const command& c, const place_body& place) {
  const bool in_one_row = place.form == place_form::row || place.form == place_form::shared;
  return in_one_row && c.may_be_parted();
}

place_body part_of(const place_body& whole, std::uint64_t at, std::uint64_t most) {
  place_body place = whole;
  place.offset += at;
  place.size = std::min(most, whole.size - at);
  return place;
}

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

landing landing_of(const box& b, void* ptr, const std::size_t* region) {
  landing land{static_cast<std::byte*>(ptr) + b.first, b.bytes};
  if (b.extent == b.bytes) return land;
  land.row = region[0], land.pitch = b.row, land.rows = region[1], land.slice = b.slice;
  return land;
}

cl_int read(command& c, const place_body& from, const landing& land, bool blocking) {
  // Without posts every read is waited for.
  blocking = blocking || link::instance().synchronous();
  std::uint64_t at = 0;
  cl_int code = blocking ? read_through(c, from, land, at) : CL_SUCCESS;
  if (code == CL_SUCCESS && at == 0 && !goes_in_parts(c, from))
    code = read_part(c.body(), from, land, blocking), at = land.size;
  while (at < land.size && code == CL_SUCCESS) {
    const place_body place = part_of(from, at, part);
    const bool last = at + place.size == from.size;
    const landing here{land.to + at, static_cast<std::size_t>(place.size)};
    code = read_part(c.body(at == 0, last), place, here, blocking && last);
    at += place.size;
  }
  return c.done(code);
}

cl_int write(command& c, const place_body& to, std::span<const std::byte> bytes) {
  std::uint64_t at = 0;
  cl_int code = write_through(c, to, bytes, at);
  if (code == CL_SUCCESS && at == 0 && !goes_in_parts(c, to))
    code = write_part(c.body(), to, bytes), at = bytes.size();
  while (at < bytes.size() && code == CL_SUCCESS) {
    const place_body place = part_of(to, at, part);
    const auto here = bytes.subspan(static_cast<std::size_t>(at), static_cast<std::size_t>(place.size));
    code = write_part(c.body(at == 0, at + place.size == to.size), place, here);
    at += place.size;
  }
  return c.done(code);
}

cl_int read_there(command& c, const place_body& from, const area_place& into, bool blocking) {
  return c.done(read_into(c.body(), from, into, blocking));
}

cl_int write_there(command& c, const place_body& to, const area_place& from, std::uint64_t size) {
  return c.done(write_from(c.body(), to, from, size));
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

/// Memory of ours that shows a part of a buffer, at an aligned address.
std::byte* make_room(mapping& m) {
  m.own = std::make_unique_for_overwrite<std::byte[]>(m.size + map_alignment);
  const auto address = reinterpret_cast<std::uintptr_t>(m.own.get());
  return m.own.get() + (map_alignment - address % map_alignment) % map_alignment;
}

}  // namespace outboard::frontend::opencl
