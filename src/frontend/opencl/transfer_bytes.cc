#include <algorithm>

#include "frontend/opencl/transfer.hh"

namespace outboard::frontend::opencl {
namespace {

/// Much goes in parts of so many bytes: the device, the server and the line each work on another one, and
/// what a part needs of memory is at hand from the one before.
constexpr std::uint64_t part = 1u << 20;

bool goes_in_parts(const command& c, const place_body& place) {
  const bool in_one_row = place.form == place_form::row || place.form == place_form::shared;
  return in_one_row && place.size > 2 * part && c.may_be_parted();
}

place_body part_of(const place_body& whole, std::uint64_t at) {
  place_body place = whole;
  place.offset += at;
  place.size = std::min(part, whole.size - at);
  return place;
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

landing landing_of(const box& b, void* ptr, const std::size_t* region) {
  landing land{static_cast<std::byte*>(ptr) + b.first, b.bytes};
  if (b.extent == b.bytes) return land;
  land.row = region[0], land.pitch = b.row, land.rows = region[1], land.slice = b.slice;
  return land;
}

cl_int read(command& c, const place_body& from, const landing& land, bool blocking) {
  // Without posts every read is waited for.
  blocking = blocking || link::instance().synchronous();
  if (!goes_in_parts(c, from)) return c.done(read_part(c.body(), from, land, blocking));
  cl_int code = CL_SUCCESS;
  for (std::uint64_t at = 0; at < from.size && code == CL_SUCCESS; at += part) {
    const place_body place = part_of(from, at);
    const bool last = at + place.size == from.size;
    const landing here{land.to + at, static_cast<std::size_t>(place.size)};
    code = read_part(c.body(at == 0, last), place, here, blocking && last);
  }
  return c.done(code);
}

cl_int write(command& c, const place_body& to, std::span<const std::byte> bytes) {
  if (!goes_in_parts(c, to)) return c.done(write_part(c.body(), to, bytes));
  cl_int code = CL_SUCCESS;
  for (std::uint64_t at = 0; at < to.size && code == CL_SUCCESS; at += part) {
    const place_body place = part_of(to, at);
    code = write_part(c.body(at == 0, at + place.size == to.size), place, bytes.subspan(at, place.size));
  }
  return c.done(code);
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
