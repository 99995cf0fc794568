#include "device/cpu/copy.hh"

#include <cstring>

#include "device/cpu/capture.hh"
#include "device/cpu/machine.hh"

namespace outboard::device::cpu {
namespace {

constexpr std::size_t staging_limit = 64u << 10;

void* pointer(std::uint64_t address) { return reinterpret_cast<void*>(address); }

/// One side of a copy: `bytes` from `address` on.
bool allowed(std::uint64_t address, std::uint64_t bytes, side where, bool write) {
  const memory& store = *here().store;
  if (where == side::host) return address != 0;
  if (where == side::either && !store.lookup(address)) return address != 0;
  return store.accessible(address, bytes, write);
}

/// Memory whose bytes stay until the operation runs: the device's and page-locked.
bool stays(std::uint64_t address) { return here().store->lookup(address).has_value(); }

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

/// The body of a copy between ranges that were accessible at the call; a range unmapped since is the
/// program's error.
CUresult move_checked(std::uint64_t to, std::uint64_t from, const copy_shape& s) {
  const memory::flight flight(*here().store);
  recorded_span span(here().recorder);
  if (span.on()) {
    span.what.kind = api::work_kind::copy;
    span.what.from = side_of(from);
    span.what.to = side_of(to);
    span.what.bytes = s.width * s.height * s.depth;
  }
  move(to, from, s);
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

bool allowed(const copy_request& r) {
  return allowed(r.to, r.size.extent(r.size.to_pitch, r.size.to_slice), r.to_side, true) &&
         allowed(r.from, r.size.extent(r.size.from_pitch, r.size.from_slice), r.from_side, false);
}

copy_work work_of(const context_ptr& c, const copy_request& r) {
  return {description(r), c,
          [to = r.to, from = r.from, size = r.size] { return move_checked(to, from, size); }};
}

CUresult copy(const copy_request& r) {
  return with_context([&](context& own, const context_ptr& c) -> CUresult {
    stream_ptr s;
    if (const CUresult bad = stream_of(c, r.stream, r.per_thread, s); bad != CUDA_SUCCESS) return bad;
    if (r.size.empty()) return CUDA_SUCCESS;
    copy_shape size = r.size;
    if (!allowed(r)) return CUDA_ERROR_INVALID_VALUE;
    if (s->capturing()) return capture_node(*s, CU_GRAPH_NODE_TYPE_MEMCPY, work_of(c, r));
    scheduler& work = here().work;
    const bool from_stays = r.from_side == side::device || stays(r.from);
    const bool to_stays = r.to_side == side::device || stays(r.to);
    if (!r.wait && to_stays && from_stays) {
      work.submit(s, make_task([to = r.to, from = r.from, size] { return move_checked(to, from, size); }));
      return CUDA_SUCCESS;
    }
    const std::uint64_t from_bytes = size.extent(size.from_pitch, size.from_slice);
    if (!r.wait && to_stays && from_bytes <= staging_limit) {
      std::vector<std::byte> staged = packed(r.from, size);
      work.submit(s, make_task([to = r.to, size, staged = std::move(staged)] {
                    return move_checked(to, reinterpret_cast<std::uint64_t>(staged.data()), size);
                  }));
      return CUDA_SUCCESS;
    }
    work.run(s, make_task([to = r.to, from = r.from, size] { return move_checked(to, from, size); }));
    return static_cast<CUresult>(own.error());
  });
}

CUresult copy_now(copy_request r, bool per_thread) {
  r.per_thread = per_thread;
  r.wait = r.to_side != side::device || r.from_side != side::device;
  return copy(r);
}

CUresult copy_later(copy_request r, CUstream stream, bool per_thread) {
  r.stream = stream;
  r.per_thread = per_thread;
  return copy(r);
}

}  // namespace outboard::device::cpu
