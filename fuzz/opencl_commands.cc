// Commands of the fuzzing platform. The memory that they name must be valid, and is touched when they are
// carried out.
#include <cstring>

#include "base/check.hh"
#include "marshal/opencl/box.hh"
#include "opencl_world.hh"

namespace outboard::fuzz {
namespace {

using marshal::opencl::box;
using marshal::opencl::extent_of;
using marshal::opencl::lies_inside;

std::shared_ptr<memory> buffer_of(cl_mem handle) {
  auto m = the<memory>(handle);
  CHECK(m->type == CL_MEM_OBJECT_BUFFER);
  return m;
}

/// The bytes of a row, which must be the buffer's.
std::byte* row_of(const memory& m, std::size_t offset, std::size_t size) {
  CHECK(lies_inside(m.size, offset, size));
  return m.bytes + offset;
}

struct place {
  std::shared_ptr<memory> in;
  std::size_t first = 0, extent = 0, bytes = 0;
  std::byte* at() const { return in->bytes + first; }
};

place box_of(cl_mem handle, const std::size_t* origin, const std::size_t* region, std::size_t row,
             std::size_t slice) {
  place p{buffer_of(handle)};
  box b;
  CHECK(b.set(origin, region, row, slice));
  (void)row_of(*p.in, b.first, b.extent);
  return p.first = b.first, p.extent = b.extent, p.bytes = b.bytes, p;
}

place region_of(cl_mem handle, const std::size_t* origin, const std::size_t* region) {
  place p{the<memory>(handle)};
  const memory& m = *p.in;
  CHECK(m.type != CL_MEM_OBJECT_BUFFER && m.type != CL_MEM_OBJECT_PIPE);
  CHECK(lies_inside(extent_of(m.shape), origin, region));
  const bool layers = m.type == CL_MEM_OBJECT_IMAGE1D_ARRAY;
  const std::size_t row = layers ? m.slice : m.row, slice = m.slice;
  p.first = origin[0] * m.element + origin[1] * row + origin[2] * slice;
  p.extent = region[0] * m.element + (region[1] - 1) * row + (region[2] - 1) * slice;
  p.bytes = region[0] * region[1] * region[2] * m.element;
  CHECK(lies_inside(m.size, p.first, p.extent));
  return p;
}

/// A copy: touches each byte of both places.
cl_int move(cl_command_queue q, place from, place to, cl_uint n, const cl_event* waits, cl_event* done) {
  return give(q, n, waits, done, [=] {
    touch(from.at(), from.extent);
    change(to.at(), to.extent, std::byte{3});
  });
}
cl_int read(cl_command_queue q, place from, void* to, cl_uint n, const cl_event* waits, cl_event* done) {
  return give(q, n, waits, done, [=] {
    touch(from.at(), from.extent);
    change(to, from.bytes, std::byte{5});
  });
}
cl_int write(cl_command_queue q, place to, const void* from, cl_uint n, const cl_event* waits,
             cl_event* done) {
  return give(q, n, waits, done, [=] {
    touch(from, to.bytes);
    change(to.at(), to.extent, std::byte{7});
  });
}
place row(cl_mem buffer, std::size_t offset, std::size_t size) {
  place p{buffer_of(buffer), offset, size, size};
  (void)row_of(*p.in, offset, size);
  return p;
}

std::uint64_t number(const void* at) { return reinterpret_cast<std::uint64_t>(at); }
bool in_shared(const void* at) { return number(at) >> 40 == shared_address(0) >> 40; }

cl_int launch(cl_command_queue q, cl_kernel handle, cl_uint dimensions, const std::size_t* offset,
              const std::size_t* global, const std::size_t* local, cl_uint n, const cl_event* waits,
              cl_event* done) {
  const auto k = handle ? the<kernel>(handle) : nullptr;
  if (!k) return CL_INVALID_KERNEL;
  if (dimensions < 1 || dimensions > 3) return CL_INVALID_WORK_DIMENSION;
  for (const std::size_t* sizes : {offset, global, local}) {
    if (sizes) touch(sizes, dimensions * sizeof *sizes);
  }
  std::vector<std::shared_ptr<memory>> used;
  for (cl_uint i = 0; i < std::size(parameters); ++i) {
    const auto found = k->values.find(i);
    if (found == k->values.end() || !found->second.set) return CL_INVALID_KERNEL_ARGS;
    if (auto m = found->second.buffer.lock()) used.push_back(std::move(m));
  }
  return give(q, n, waits, done, [used] {
    for (const auto& each : used) change(each->bytes, each->size, std::byte{9});
  });
}

}  // namespace

void add_commands(api::opencl::function_table& t) {
  t.clEnqueueReadBuffer = [](cl_command_queue q, cl_mem m, cl_bool, std::size_t offset, std::size_t size,
                             void* to, cl_uint n, const cl_event* waits, cl_event* done) -> cl_int {
    const inside here;
    return read(q, row(m, offset, size), to, n, waits, done);
  };
  t.clEnqueueWriteBuffer = [](cl_command_queue q, cl_mem m, cl_bool, std::size_t offset, std::size_t size,
                              const void* from, cl_uint n, const cl_event* waits, cl_event* done) -> cl_int {
    const inside here;
    return write(q, row(m, offset, size), from, n, waits, done);
  };
  t.clEnqueueReadBufferRect = [](cl_command_queue q, cl_mem m, cl_bool, const std::size_t* origin,
                                 const std::size_t*, const std::size_t* region, std::size_t row_pitch,
                                 std::size_t slice, std::size_t, std::size_t, void* to, cl_uint n,
                                 const cl_event* waits, cl_event* done) -> cl_int {
    const inside here;
    return read(q, box_of(m, origin, region, row_pitch, slice), to, n, waits, done);
  };
  t.clEnqueueWriteBufferRect = [](cl_command_queue q, cl_mem m, cl_bool, const std::size_t* origin,
                                  const std::size_t*, const std::size_t* region, std::size_t row_pitch,
                                  std::size_t slice, std::size_t, std::size_t, const void* from, cl_uint n,
                                  const cl_event* waits, cl_event* done) -> cl_int {
    const inside here;
    return write(q, box_of(m, origin, region, row_pitch, slice), from, n, waits, done);
  };
  t.clEnqueueReadImage = [](cl_command_queue q, cl_mem m, cl_bool, const std::size_t* origin,
                            const std::size_t* region, std::size_t, std::size_t, void* to, cl_uint n,
                            const cl_event* waits, cl_event* done) -> cl_int {
    const inside here;
    return read(q, region_of(m, origin, region), to, n, waits, done);
  };
  t.clEnqueueWriteImage = [](cl_command_queue q, cl_mem m, cl_bool, const std::size_t* origin,
                             const std::size_t* region, std::size_t, std::size_t, const void* from, cl_uint n,
                             const cl_event* waits, cl_event* done) -> cl_int {
    const inside here;
    return write(q, region_of(m, origin, region), from, n, waits, done);
  };
  t.clEnqueueFillBuffer = [](cl_command_queue q, cl_mem m, const void* pattern, std::size_t unit,
                             std::size_t offset, std::size_t size, cl_uint n, const cl_event* waits,
                             cl_event* done) -> cl_int {
    const inside here;
    if (!pattern || !unit || unit > 128) return CL_INVALID_VALUE;
    touch(pattern, unit);
    const place p = row(m, offset, size);
    return give(q, n, waits, done, [p] { change(p.at(), p.extent, std::byte{1}); });
  };
  t.clEnqueueCopyBuffer = [](cl_command_queue q, cl_mem from, cl_mem to, std::size_t at, std::size_t there,
                             std::size_t size, cl_uint n, const cl_event* waits, cl_event* done) -> cl_int {
    const inside here;
    return move(q, row(from, at, size), row(to, there, size), n, waits, done);
  };
  t.clEnqueueCopyBufferRect = [](cl_command_queue q, cl_mem from, cl_mem to, const std::size_t* at,
                                 const std::size_t* there, const std::size_t* region, std::size_t from_row,
                                 std::size_t from_slice, std::size_t to_row, std::size_t to_slice, cl_uint n,
                                 const cl_event* waits, cl_event* done) -> cl_int {
    const inside here;
    return move(q, box_of(from, at, region, from_row, from_slice),
                box_of(to, there, region, to_row, to_slice), n, waits, done);
  };
  t.clEnqueueFillImage = [](cl_command_queue q, cl_mem m, const void* color, const std::size_t* origin,
                            const std::size_t* region, cl_uint n, const cl_event* waits,
                            cl_event* done) -> cl_int {
    const inside here;
    touch(color, 16);
    const place p = region_of(m, origin, region);
    return give(q, n, waits, done, [p] { change(p.at(), p.extent, std::byte{1}); });
  };
  t.clEnqueueCopyImage = [](cl_command_queue q, cl_mem from, cl_mem to, const std::size_t* at,
                            const std::size_t* there, const std::size_t* region, cl_uint n,
                            const cl_event* waits, cl_event* done) -> cl_int {
    const inside here;
    if (the<memory>(from)->element != the<memory>(to)->element) return CL_IMAGE_FORMAT_MISMATCH;
    return move(q, region_of(from, at, region), region_of(to, there, region), n, waits, done);
  };
  t.clEnqueueCopyImageToBuffer = [](cl_command_queue q, cl_mem from, cl_mem to, const std::size_t* at,
                                    const std::size_t* region, std::size_t there, cl_uint n,
                                    const cl_event* waits, cl_event* done) -> cl_int {
    const inside here;
    const place p = region_of(from, at, region);
    return move(q, p, row(to, there, p.bytes), n, waits, done);
  };
  t.clEnqueueCopyBufferToImage = [](cl_command_queue q, cl_mem from, cl_mem to, std::size_t at,
                                    const std::size_t* there, const std::size_t* region, cl_uint n,
                                    const cl_event* waits, cl_event* done) -> cl_int {
    const inside here;
    const place p = region_of(to, there, region);
    return move(q, row(from, at, p.bytes), p, n, waits, done);
  };
  t.clEnqueueMapBuffer = [](cl_command_queue q, cl_mem m, cl_bool, cl_map_flags, std::size_t offset,
                            std::size_t size, cl_uint n, const cl_event* waits, cl_event* done,
                            cl_int* code) -> void* {
    const inside here;
    const place p = row(m, offset, size);
    *code = give(q, n, waits, done, [p] { touch(p.at(), p.extent); });
    return p.at();
  };
  t.clEnqueueUnmapMemObject = [](cl_command_queue q, cl_mem m, void*, cl_uint n, const cl_event* waits,
                                 cl_event* done) -> cl_int {
    const inside here;
    const auto it = the<memory>(m);
    return give(q, n, waits, done, [it] { touch(it->bytes, it->size); });
  };
  t.clEnqueueMigrateMemObjects = [](cl_command_queue q, cl_uint count, const cl_mem* list,
                                    cl_mem_migration_flags, cl_uint n, const cl_event* waits,
                                    cl_event* done) -> cl_int {
    const inside here;
    if (!list || !count) return CL_INVALID_VALUE;
    for (cl_uint i = 0; i < count; ++i) {
      if (!list[i]) return CL_INVALID_MEM_OBJECT;
      (void)the<memory>(list[i]);
    }
    return give(q, n, waits, done, [] {});
  };
  t.clEnqueueNDRangeKernel = [](cl_command_queue q, cl_kernel k, cl_uint dimensions,
                                const std::size_t* offset, const std::size_t* global,
                                const std::size_t* local, cl_uint n, const cl_event* waits,
                                cl_event* done) -> cl_int {
    const inside here;
    return launch(q, k, dimensions, offset, global, local, n, waits, done);
  };
  const auto mark = [](cl_command_queue q, cl_uint n, const cl_event* waits, cl_event* done) -> cl_int {
    const inside here;
    return give(q, n, waits, done, [] {});
  };
  t.clEnqueueMarkerWithWaitList = mark;
  t.clEnqueueBarrierWithWaitList = mark;
  t.clEnqueueSVMMemcpy = [](cl_command_queue q, cl_bool, void* to, const void* from, std::size_t size,
                            cl_uint n, const cl_event* waits, cl_event* done) -> cl_int {
    const inside here;
    CHECK(in_shared(to) || in_shared(from));
    if (in_shared(to)) must_be_shared(number(to), size);
    if (in_shared(from)) must_be_shared(number(from), size);
    return give(q, n, waits, done, [=] { touch(from, size), change(to, size, std::byte{2}); });
  };
  t.clEnqueueSVMMemFill = [](cl_command_queue q, void* to, const void* pattern, std::size_t unit,
                             std::size_t size, cl_uint n, const cl_event* waits, cl_event* done) -> cl_int {
    const inside here;
    touch(pattern, unit);
    must_be_shared(number(to), size);
    return give(q, n, waits, done, [=] { change(to, size, std::byte{2}); });
  };
  t.clEnqueueSVMMap = [](cl_command_queue q, cl_bool, cl_map_flags, void* at, std::size_t size, cl_uint n,
                         const cl_event* waits, cl_event* done) -> cl_int {
    const inside here;
    must_be_shared(number(at), size);
    return give(q, n, waits, done, [=] { touch(at, size); });
  };
  t.clEnqueueSVMUnmap = [](cl_command_queue q, void* at, cl_uint n, const cl_event* waits,
                           cl_event* done) -> cl_int {
    const inside here;
    must_be_shared(number(at), 1);
    return give(q, n, waits, done, [=] { touch(at, 1); });
  };
  t.clEnqueueSVMMigrateMem = [](cl_command_queue q, cl_uint count, const void** pointers,
                                const std::size_t* sizes, cl_mem_migration_flags, cl_uint n,
                                const cl_event* waits, cl_event* done) -> cl_int {
    const inside here;
    for (cl_uint i = 0; i < count; ++i) must_be_shared(number(pointers[i]), sizes[i] ? sizes[i] : 1);
    return give(q, n, waits, done, [] {});
  };
}

}  // namespace outboard::fuzz
