// How bytes of the program travel with commands on buffers and images. Thread-bound, as command.hh.
#pragma once

#include <vector>

#include "frontend/opencl/command.hh"
#include "frontend/opencl/launch_shape.hh"
#include "frontend/opencl/transfer/parts.hh"

namespace outboard::frontend::opencl {

using marshal::opencl::area_place;
using marshal::opencl::place_body;
using marshal::opencl::place_form;

/// CL_MAP_* that promise to change the bytes.
inline constexpr cl_map_flags map_writes = CL_MAP_WRITE | CL_MAP_WRITE_INVALIDATE_REGION;
/// As a device aligns what it maps: for any type of the language.
inline constexpr std::size_t map_alignment = 128;
inline constexpr std::size_t no_origin[3] = {};

/// Flags of a memory object that exclude access by the host.
inline constexpr cl_mem_flags no_reads = CL_MEM_HOST_WRITE_ONLY | CL_MEM_HOST_NO_ACCESS;
inline constexpr cl_mem_flags no_writes = CL_MEM_HOST_READ_ONLY | CL_MEM_HOST_NO_ACCESS;

constexpr bool map_flags_fit(cl_map_flags flags) {
  const bool alone = flags == CL_MAP_WRITE_INVALIDATE_REGION || !(flags & CL_MAP_WRITE_INVALIDATE_REGION);
  return (flags & ~(CL_MAP_READ | map_writes)) == 0 && alone;
}
constexpr cl_mem_flags refused_by(cl_map_flags flags) {
  return ((flags & CL_MAP_READ) ? no_reads : 0) | ((flags & map_writes) ? no_writes : 0);
}

/// The rows of a box in the program's memory, where a read's bytes go or a write's come from, which are only
/// read; `region` in bytes.
landing rows_of(const box& b, const void* ptr, const std::size_t* region);
inline landing row_of(const void* ptr, std::size_t size) {
  return {const_cast<std::byte*>(static_cast<const std::byte*>(ptr)), size};
}
/// Of the bytes without gaps, `size` from there on. They begin with a row, and end in the same slice or with
/// one.
landing part_of(const landing& whole, std::uint64_t offset, std::uint64_t size);
/// All of them one behind the other.
std::vector<std::byte> gather(const landing& from);

cl_int read(command& c, const place_body& from, const landing& land, bool blocking);
cl_int write(command& c, const place_body& to, const landing& from);

/// Through blocks that both ends have, as far as there are some: reads that the program waits for, and
/// writes. `next`: the parts before it have been taken care of; the others go another way.
cl_int read_through(command& c, const parts& from, const landing& land, std::uint64_t& next);
cl_int write_through(command& c, const parts& to, const landing& from, std::uint64_t& next);

/// The same for rows over data connections, all or nothing: `moved` says whether. When the functions return,
/// the bytes are there or have left.
cl_int read_streamed(command& c, const place_body& from, const landing& land, bool& moved);
cl_int write_streamed(command& c, const place_body& to, const landing& from, bool& moved);

/// One request each.
cl_int read_into(marshal::opencl::command_body what, const place_body& from, const area_place& into,
                 bool blocking);
cl_int write_from(marshal::opencl::command_body what, const place_body& to, const area_place& from,
                  std::uint64_t size);

/// As read() and write(), for bytes in memory that the server has, too.
cl_int read_there(command& c, const place_body& from, const area_place& into, bool blocking);
cl_int write_there(command& c, const place_body& to, const area_place& from, std::uint64_t size);

/// Whether bytes may still come there from reads whose end the program has not learned. Then it has neither
/// read nor changed what it mapped.
bool still_come_to(std::span<const std::byte> memory);

/// Memory of ours for m.size bytes, at an aligned address.
std::byte* make_room(mapping& m);

}  // namespace outboard::frontend::opencl
