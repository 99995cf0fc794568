#include "device/cpu/copy.hh"

#include <cstring>

#include "device/cpu/graph/capture.hh"
#include "device/cpu/machine.hh"

namespace outboard::device::cpu {
namespace {

constexpr std::size_t staging_limit = 64u << 10;

void* pointer(std::uint64_t address) { return reinterpret_cast<void*>(address); }

/// The request with its sides settled: memory that the device knows now (page-locked memory, too, whatever
/// the request calls it) stays the device's to check, also if it goes before the copy runs. All else is
/// pageable memory of the program.
copy_request settled(copy_request r) {
  const auto settle = [](std::uint64_t address, side& where) {
    if (where != side::device) where = here().store->lookup(address) ? side::device : side::host;
  };
  settle(r.to, r.to_side);
  settle(r.from, r.from_side);
  return r;
}

/// One side of a settled request: `bytes` from `address` on.
bool reachable(std::uint64_t address, std::uint64_t bytes, side where, bool write) {
  if (where == side::host) return address != 0;
  return here().store->accessible(address, bytes, write);
}

/// Both sides of a settled request are there now.
bool reachable(const copy_request& r) {
  return reachable(r.to, r.size.extent(r.size.to_pitch, r.size.to_slice), r.to_side, true) &&
         reachable(r.from, r.size.extent(r.size.from_pitch, r.size.from_slice), r.from_side, false);
}

void move(std::uint64_t to, std::uint64_t from, const copy_shape& s) {
  for (std::size_t z = 0; z < s.depth; ++z) {
    for (std::size_t y = 0; y < s.height; ++y) {
      std::memmove(pointer(to + z * s.to_slice + y * s.to_pitch),
                   pointer(from + z * s.from_slice + y * s.from_pitch), s.width);
    }
  }
}

/// As a profiler names it.
api::memory_side side_of(std::uint64_t address) {
  const auto block = here().store->lookup(address);
  if (!block) return api::memory_side::pageable;
  switch (block->kind) {
    case memory_kind::host:
    case memory_kind::registered:
      return api::memory_side::pinned;
    case memory_kind::managed:
      return api::memory_side::managed;
    default:
      return api::memory_side::device;
  }
}

/// The body of a copy, whose request is settled. It runs long after the call where a graph holds it: memory
/// that has gone since is the program's error, and under the flight none goes while bytes move.
CUresult move_checked(const copy_request& r) {
  const memory::flight flight(*here().store);
  if (!reachable(r)) return CUDA_ERROR_ILLEGAL_ADDRESS;
  recorded_span span(here().recorder);
  if (span.on()) {
    span.what.kind = api::work_kind::copy;
    span.what.from = side_of(r.from);
    span.what.to = side_of(r.to);
    span.what.bytes = r.size.width * r.size.height * r.size.depth;
  }
  move(r.to, r.from, r.size);
  return CUDA_SUCCESS;
}

/// What a captured copy looks like to the program.
CUDA_MEMCPY3D description(const copy_request& r) {
  if (r.asked) return *r.asked;
  const auto memory_type = [](std::uint64_t address, side where) {
    if (where == side::host) return CU_MEMORYTYPE_HOST;
    const auto block = here().store->lookup(address);
    const bool host = !block || block->kind == memory_kind::host || block->kind == memory_kind::registered;
    return host ? CU_MEMORYTYPE_HOST : CU_MEMORYTYPE_DEVICE;
  };
  CUDA_MEMCPY3D about{};
  about.srcMemoryType = memory_type(r.from, r.from_side);
  about.dstMemoryType = memory_type(r.to, r.to_side);
  if (about.srcMemoryType == CU_MEMORYTYPE_HOST) {
    about.srcHost = pointer(r.from);
  } else {
    about.srcDevice = r.from;
  }
  if (about.dstMemoryType == CU_MEMORYTYPE_HOST) {
    about.dstHost = pointer(r.to);
  } else {
    about.dstDevice = r.to;
  }
  about.WidthInBytes = r.size.width, about.Height = r.size.height, about.Depth = r.size.depth;
  about.srcPitch = r.size.from_pitch ? r.size.from_pitch : r.size.width;
  about.dstPitch = r.size.to_pitch ? r.size.to_pitch : r.size.width;
  about.srcHeight = r.size.from_slice ? r.size.from_slice / about.srcPitch : r.size.height;
  about.dstHeight = r.size.to_slice ? r.size.to_slice / about.dstPitch : r.size.height;
  return about;
}

/// The rows of a host source one behind the other: what lies between them is not the copy's to read.
std::vector<std::byte> packed(std::uint64_t from, copy_shape& s) {
  std::vector<std::byte> bytes(s.width * s.height * s.depth);
  copy_shape in = s;
  in.to_pitch = s.width, in.to_slice = s.width * s.height;
  move(reinterpret_cast<std::uint64_t>(bytes.data()), from, in);
  s.from_pitch = in.to_pitch, s.from_slice = in.to_slice;
  return bytes;
}

}  // namespace

bool of_host(std::uint64_t address) {
  const auto block = here().store->lookup(address);
  return block && (block->kind == memory_kind::host || block->kind == memory_kind::registered ||
                   block->kind == memory_kind::managed);
}

bool allowed(const copy_request& r) { return reachable(settled(r)); }

copy_work work_of(const context_ptr& c, const copy_request& r) {
  return {description(r), c, [r = settled(r)] { return move_checked(r); }};
}

CUresult copy(const copy_request& asked) {
  return with_context([&](context& own, const context_ptr& c) -> CUresult {
    stream_ptr s;
    if (const CUresult bad = stream_of(c, asked.stream, asked.per_thread, s); bad != CUDA_SUCCESS) return bad;
    if (asked.size.empty()) return CUDA_SUCCESS;
    copy_request r = settled(asked);
    if (!reachable(r)) return CUDA_ERROR_INVALID_VALUE;
    if (s->capturing()) return capture_node(*s, CU_GRAPH_NODE_TYPE_MEMCPY, work_of(c, asked));
    scheduler& work = here().work;
    // The device's memory and page-locked memory keep their bytes until the operation runs.
    const bool from_stays = r.from_side == side::device, to_stays = r.to_side == side::device;
    if (!r.wait && to_stays && from_stays) {
      work.submit(s, make_task([r] { return move_checked(r); }));
      return CUDA_SUCCESS;
    }
    const std::uint64_t from_bytes = r.size.extent(r.size.from_pitch, r.size.from_slice);
    if (!r.wait && to_stays && from_bytes <= staging_limit) {
      std::vector<std::byte> staged = packed(r.from, r.size);
      work.submit(s, make_task([r, staged = std::move(staged)]() mutable {
                    r.from = reinterpret_cast<std::uint64_t>(staged.data());
                    return move_checked(r);
                  }));
      return CUDA_SUCCESS;
    }
    work.run(s, make_task([r] { return move_checked(r); }));
    return static_cast<CUresult>(own.error());
  });
}

CUresult copy_now(copy_request r, bool per_thread) {
  r.per_thread = per_thread;
  r.wait = r.to_side != side::device || r.from_side != side::device || of_host(r.to);
  return copy(r);
}

CUresult copy_later(copy_request r, CUstream stream, bool per_thread) {
  r.stream = stream;
  r.per_thread = per_thread;
  return copy(r);
}

}  // namespace outboard::device::cpu
