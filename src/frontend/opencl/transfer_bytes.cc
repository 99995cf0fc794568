#include "frontend/opencl/transfer.hh"

namespace outboard::frontend::opencl {

landing landing_of(const box& b, void* ptr, const std::size_t* region) {
  landing land{static_cast<std::byte*>(ptr) + b.first, b.bytes};
  if (b.extent == b.bytes) return land;
  land.row = region[0], land.pitch = b.row, land.rows = region[1], land.slice = b.slice;
  return land;
}

cl_int read(command& c, const place_body& from, const landing& land, bool blocking) {
  // Without posts every read is waited for.
  blocking = blocking || link::instance().synchronous();
  const marshal::opencl::read_body body{c.body(), from, blocking};
  message m(opcode::clEnqueueReadBuffer);
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

/// Memory of ours that shows a part of a buffer, at an aligned address.
std::byte* make_room(mapping& m) {
  m.own = std::make_unique<std::byte[]>(m.size + map_alignment);
  const auto address = reinterpret_cast<std::uintptr_t>(m.own.get());
  return m.own.get() + (map_alignment - address % map_alignment) % map_alignment;
}

}  // namespace outboard::frontend::opencl
