// Transfers of every size there and back, whichever way they travel: rows, boxes, images and maps, with and
// without a wait, from several threads, behind a closed gate, and once more after everything was released.
#include <algorithm>
#include <chrono>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <future>
#include <thread>

#include "program.hh"

namespace {

using bytes = std::vector<std::uint8_t>;

bytes pattern(std::size_t size, std::uint32_t seed) {
  bytes made(size);
  for (std::uint8_t& each : made) {
    seed = seed * 1664525 + 1013904223;
    each = static_cast<std::uint8_t>(seed >> 24);
  }
  return made;
}

std::uint64_t sum(const bytes& of) {
  std::uint64_t all = 14695981039346656037u;
  for (const std::uint8_t each : of) all = (all ^ each) * 1099511628211u;
  return all;
}

void say(const char* what, const bytes& of) {
  std::printf("%s: %zu bytes, %016llx\n", what, of.size(), static_cast<unsigned long long>(sum(of)));
}

cl_mem room(cl_context context, std::size_t size) {
  cl_int code = CL_SUCCESS;
  cl_mem made = clCreateBuffer(context, CL_MEM_READ_WRITE, size, nullptr, &code);
  CHECK_CL(code);
  return made;
}

cl_command_queue queue_of(const machine& m, cl_command_queue_properties bits) {
  cl_int code = CL_SUCCESS;
  const cl_queue_properties wanted[] = {CL_QUEUE_PROPERTIES, bits, 0};
  cl_command_queue made = clCreateCommandQueueWithProperties(m.context, m.device, wanted, &code);
  CHECK_CL(code);
  return made;
}

void there_and_back(const machine& m, cl_command_queue queue, std::size_t size, std::uint32_t seed) {
  const std::size_t before = seed % 7;
  cl_mem buffer = room(m.context, size + before);
  const bytes sent = pattern(size, seed);
  bytes waited(size), polled(size);
  CHECK_CL(clEnqueueWriteBuffer(queue, buffer, seed % 2, before, size, sent.data(), 0, nullptr, nullptr));
  CHECK_CL(clEnqueueReadBuffer(queue, buffer, CL_TRUE, before, size, waited.data(), 0, nullptr, nullptr));
  CHECK_CL(clEnqueueReadBuffer(queue, buffer, CL_FALSE, before, size, polled.data(), 0, nullptr, nullptr));
  CHECK_CL(clFinish(queue));
  REQUIRE(waited == sent);
  REQUIRE(polled == sent);
  CHECK_CL(clReleaseMemObject(buffer));
}

constexpr std::size_t kib = 1024, mib = 1024 * kib;
constexpr std::size_t sizes[] = {1,          1023,         kib,       4 * kib, 16 * kib, 64 * kib - 1,
                                 64 * kib,   64 * kib + 1, 300 * kib, mib,     mib + 1,  3 * mib,
                                 9 * mib + 5};

/// Sizes that use data connections if no memory is shared.
constexpr std::size_t large_sizes[] = {4 * mib, 4 * mib + 1, 17 * mib + 3, 40 * mib};

void every_size(const machine& m) {
  std::uint32_t seed = 1;
  for (const std::size_t size : large_sizes) there_and_back(m, m.queue, size, ++seed);
  for (int round = 0; round < 4; ++round) {
    for (const std::size_t size : sizes) there_and_back(m, m.queue, size, ++seed);
  }
  std::printf("%u transfers in rows\n", seed);
}

/// Commands behind the gate do not proceed; all others do.
void behind_a_gate(const machine& m) {
  constexpr std::size_t parts = 40;
  cl_mem buffer = room(m.context, parts * mib);
  cl_int code = CL_SUCCESS;
  cl_event gate = clCreateUserEvent(m.context, &code);
  CHECK_CL(code);
  cl_command_queue behind = queue_of(m, 0);
  const bytes sent = pattern(parts * mib, 77);
  bytes back(parts * mib);
  for (std::size_t i = 0; i < parts; ++i) {
    CHECK_CL(clEnqueueWriteBuffer(behind, buffer, CL_FALSE, i * mib, mib, sent.data() + i * mib, i == 0,
                                  i == 0 ? &gate : nullptr, nullptr));
  }
  CHECK_CL(clEnqueueReadBuffer(behind, buffer, CL_FALSE, 0, back.size(), back.data(), 0, nullptr, nullptr));
  for (const std::size_t size : sizes) there_and_back(m, m.queue, size, 5);
  CHECK_CL(clSetUserEventStatus(gate, CL_COMPLETE));
  CHECK_CL(clFinish(behind));
  REQUIRE(back == sent);
  say("behind a gate", back);
  CHECK_CL(clReleaseEvent(gate));
  CHECK_CL(clReleaseCommandQueue(behind));
  CHECK_CL(clReleaseMemObject(buffer));
}

/// One transfer of the same size, and a read in another thread that waits for the gate.
void large_behind_a_gate(const machine& m) {
  constexpr std::size_t size = 60 * mib;
  cl_mem buffer = room(m.context, size);
  cl_int code = CL_SUCCESS;
  cl_event gate = clCreateUserEvent(m.context, &code), written = nullptr;
  CHECK_CL(code);
  cl_command_queue behind = queue_of(m, 0);
  const bytes sent = pattern(size, 78);
  bytes back(size);
  CHECK_CL(clEnqueueWriteBuffer(behind, buffer, CL_FALSE, 0, size, sent.data(), 1, &gate, &written));
  std::thread reader([&] {
    CHECK_CL(clEnqueueReadBuffer(behind, buffer, CL_TRUE, 0, size, back.data(), 0, nullptr, nullptr));
  });
  for (const std::size_t each : large_sizes) there_and_back(m, m.queue, each, 6);
  cl_int status = CL_COMPLETE;
  CHECK_CL(clGetEventInfo(written, CL_EVENT_COMMAND_EXECUTION_STATUS, sizeof status, &status, nullptr));
  REQUIRE(status > CL_COMPLETE);
  CHECK_CL(clSetUserEventStatus(gate, CL_COMPLETE));
  reader.join();
  REQUIRE(back == sent);
  say("much behind a gate", back);
  CHECK_CL(clReleaseEvent(gate));
  CHECK_CL(clReleaseEvent(written));
  CHECK_CL(clReleaseCommandQueue(behind));
  CHECK_CL(clReleaseMemObject(buffer));
}

/// Bytes of reads for which no thread has waited delay no other transfer, and have arrived when a later read
/// of their queue is complete.
void beside_reads_that_come(const machine& m) {
  constexpr std::size_t size = 48 * mib;
  const bytes sent = pattern(size, 79), other = pattern(size, 80);
  bytes first(size), second(size), third(size);
  bytes source = sent;
  cl_mem one = m.buffer(source, CL_MEM_READ_WRITE | CL_MEM_COPY_HOST_PTR), two = room(m.context, size);
  for (int round = 0; round < 2; ++round) {
    CHECK_CL(clEnqueueReadBuffer(m.queue, one, CL_FALSE, 0, size, first.data(), 0, nullptr, nullptr));
    CHECK_CL(clEnqueueWriteBuffer(m.queue, two, CL_FALSE, 0, size, other.data(), 0, nullptr, nullptr));
    CHECK_CL(clEnqueueReadBuffer(m.queue, one, CL_FALSE, 0, size, second.data(), 0, nullptr, nullptr));
    CHECK_CL(clEnqueueReadBuffer(m.queue, two, CL_TRUE, 0, size, third.data(), 0, nullptr, nullptr));
    REQUIRE(first == sent);
    REQUIRE(second == sent);
    REQUIRE(third == other);
    for (bytes* each : {&first, &second, &third}) std::fill(each->begin(), each->end(), 0);
  }
  std::vector<std::thread> all;
  for (std::uint32_t i = 0; i < 2; ++i) {
    all.emplace_back([&] {
      cl_command_queue queue = queue_of(m, 0);
      bytes here(size);
      for (int round = 0; round < 4; ++round) {
        CHECK_CL(clEnqueueReadBuffer(queue, one, CL_FALSE, 0, size, here.data(), 0, nullptr, nullptr));
        bytes there(9 * mib);
        CHECK_CL(
            clEnqueueReadBuffer(queue, two, CL_TRUE, mib, there.size(), there.data(), 0, nullptr, nullptr));
        REQUIRE(std::memcmp(there.data(), other.data() + mib, there.size()) == 0);
        REQUIRE(here == sent);
        std::fill(here.begin(), here.end(), 0);
      }
      CHECK_CL(clReleaseCommandQueue(queue));
    });
  }
  for (std::thread& each : all) each.join();
  say("beside reads that come", sent);
  for (cl_mem each : {one, two}) CHECK_CL(clReleaseMemObject(each));
}

/// Memory that is mapped behind a gate and unmapped before the gate opens was never visible to the program,
/// so it stays unchanged.
void let_go_unseen(const machine& m) {
  const bytes sent = pattern(3 * mib, 15);
  bytes back(sent.size());
  cl_mem buffer = room(m.context, sent.size());
  CHECK_CL(clEnqueueWriteBuffer(m.queue, buffer, CL_TRUE, 0, sent.size(), sent.data(), 0, nullptr, nullptr));
  cl_command_queue behind = queue_of(m, 0);
  for (int round = 0; round < 4; ++round) {
    cl_int code = CL_SUCCESS;
    cl_event gate = clCreateUserEvent(m.context, &code), shown = nullptr;
    CHECK_CL(code);
    void* const at = clEnqueueMapBuffer(behind, buffer, CL_FALSE, CL_MAP_READ | CL_MAP_WRITE, 0, sent.size(),
                                        1, &gate, &shown, &code);
    CHECK_CL(code);
    CHECK_CL(clEnqueueUnmapMemObject(behind, buffer, at, 1, &shown, nullptr));
    CHECK_CL(clSetUserEventStatus(gate, CL_COMPLETE));
    CHECK_CL(clFinish(behind));
    CHECK_CL(clEnqueueReadBuffer(m.queue, buffer, CL_TRUE, 0, back.size(), back.data(), 0, nullptr, nullptr));
    REQUIRE(back == sent);
    for (cl_event each : {gate, shown}) CHECK_CL(clReleaseEvent(each));
  }
  say("let go unseen", back);
  CHECK_CL(clReleaseCommandQueue(behind));
  CHECK_CL(clReleaseMemObject(buffer));
}

/// When a callback runs, the bytes of earlier reads have arrived, although no thread has waited.
void told_without_a_wait(const machine& m) {
  const bytes sent = pattern(20 * kib, 8);
  cl_mem buffer = room(m.context, sent.size());
  for (int round = 0; round < 30; ++round) {
    cl_int code = CL_SUCCESS;
    cl_event gate = clCreateUserEvent(m.context, &code), events[3];
    CHECK_CL(code);
    bytes back(sent.size());
    std::promise<bool> told;
    struct expected {
      const bytes *sent, *back;
      std::promise<bool>* told;
    } given{&sent, &back, &told};
    CHECK_CL(
        clEnqueueWriteBuffer(m.queue, buffer, CL_FALSE, 0, sent.size(), sent.data(), 1, &gate, &events[0]));
    CHECK_CL(
        clEnqueueReadBuffer(m.queue, buffer, CL_FALSE, 0, back.size(), back.data(), 0, nullptr, &events[1]));
    CHECK_CL(clEnqueueMarkerWithWaitList(m.queue, 0, nullptr, &events[2]));
    const auto reached = [](cl_event, cl_int status, void* data) {
      const auto& of = *static_cast<expected*>(data);
      of.told->set_value(status == CL_COMPLETE && *of.back == *of.sent);
    };
    CHECK_CL(clSetEventCallback(events[round % 2 + 1], CL_COMPLETE, reached, &given));
    CHECK_CL(clFlush(m.queue));
    CHECK_CL(clSetUserEventStatus(gate, CL_COMPLETE));
    auto answer = told.get_future();
    REQUIRE(answer.wait_for(std::chrono::seconds(30)) == std::future_status::ready);
    REQUIRE(answer.get());
    CHECK_CL(clFinish(m.queue));
    CHECK_CL(clReleaseEvent(gate));
    for (cl_event each : events) CHECK_CL(clReleaseEvent(each));
  }
  std::printf("told without a wait\n");
  CHECK_CL(clReleaseMemObject(buffer));
}

void threads(const machine& m) {
  std::vector<std::thread> all;
  for (std::uint32_t i = 0; i < 4; ++i) {
    all.emplace_back([&m, i] {
      cl_command_queue queue = queue_of(m, 0);
      for (std::uint32_t n = 0; n < 3; ++n) {
        for (const std::size_t size : sizes) there_and_back(m, queue, size, 100 * i + n);
      }
      CHECK_CL(clReleaseCommandQueue(queue));
    });
  }
  for (std::thread& each : all) each.join();
  std::printf("threads have done\n");
}

/// Transfers that must not be split.
void as_one(const machine& m) {
  cl_command_queue queue = queue_of(m, CL_QUEUE_OUT_OF_ORDER_EXEC_MODE_ENABLE | CL_QUEUE_PROFILING_ENABLE);
  const bytes sent = pattern(5 * mib, 9);
  bytes back(sent.size());
  cl_mem buffer = room(m.context, sent.size());
  for (int round = 0; round < 3; ++round) {
    cl_event written = nullptr, read = nullptr;
    std::fill(back.begin(), back.end(), 0);
    CHECK_CL(
        clEnqueueWriteBuffer(queue, buffer, CL_FALSE, 0, sent.size(), sent.data(), 0, nullptr, &written));
    CHECK_CL(clEnqueueReadBuffer(queue, buffer, CL_TRUE, 0, back.size(), back.data(), 1, &written, &read));
    REQUIRE(back == sent);
    cl_ulong begun = 0, ended = 0;
    CHECK_CL(clGetEventProfilingInfo(read, CL_PROFILING_COMMAND_START, sizeof begun, &begun, nullptr));
    CHECK_CL(clGetEventProfilingInfo(read, CL_PROFILING_COMMAND_END, sizeof ended, &ended, nullptr));
    REQUIRE(ended >= begun);
    for (cl_event each : {written, read}) CHECK_CL(clReleaseEvent(each));
  }
  say("out of order", back);
  CHECK_CL(clReleaseMemObject(buffer));
  CHECK_CL(clReleaseCommandQueue(queue));
}

void boxes(const machine& m) {
  const std::size_t row = 700, slice = row * 200, origin[3] = {13, 21, 2}, here[3] = {5, 6, 1},
                    region[3] = {600, 170, 5}, row_here = 640, slice_here = row_here * 180;
  const bytes sent = pattern(slice_here * 7, 3);
  bytes there = pattern(slice * 9, 4), back(sent.size()), whole(there.size());
  cl_mem buffer = m.buffer(there, CL_MEM_READ_WRITE | CL_MEM_COPY_HOST_PTR);
  for (int round = 0; round < 4; ++round) {
    CHECK_CL(clEnqueueWriteBufferRect(m.queue, buffer, CL_FALSE, origin, here, region, row, slice, row_here,
                                      slice_here, sent.data(), 0, nullptr, nullptr));
    CHECK_CL(clEnqueueReadBufferRect(m.queue, buffer, CL_TRUE, origin, here, region, row, slice, row_here,
                                     slice_here, back.data(), 0, nullptr, nullptr));
  }
  CHECK_CL(clEnqueueReadBuffer(m.queue, buffer, CL_TRUE, 0, whole.size(), whole.data(), 0, nullptr, nullptr));
  for (std::size_t z = 0; z < region[2]; ++z) {
    for (std::size_t y = 0; y < region[1]; ++y) {
      const auto* const from = &sent[(here[2] + z) * slice_here + (here[1] + y) * row_here + here[0]];
      std::copy_n(from, region[0], &there[(origin[2] + z) * slice + (origin[1] + y) * row + origin[0]]);
      REQUIRE(std::memcmp(&back[(here[2] + z) * slice_here + (here[1] + y) * row_here + here[0]], from,
                          region[0]) == 0);
    }
  }
  REQUIRE(whole == there);
  say("boxes", back);
  CHECK_CL(clReleaseMemObject(buffer));
}

void* map(const machine& m, cl_mem buffer, cl_map_flags flags, std::size_t offset, std::size_t size) {
  cl_int code = CL_SUCCESS;
  void* const at =
      clEnqueueMapBuffer(m.queue, buffer, CL_TRUE, flags, offset, size, 0, nullptr, nullptr, &code);
  CHECK_CL(code);
  return at;
}

void unmap(const machine& m, cl_mem buffer, void* at) {
  CHECK_CL(clEnqueueUnmapMemObject(m.queue, buffer, at, 0, nullptr, nullptr));
}

/// So many maps that the buffer gets memory of its own for them.
void maps(const machine& m) {
  const std::size_t size = 2 * mib;
  cl_program program = m.build("__kernel void more(__global uchar* v) { v[get_global_id(0)] += 3; }");
  cl_kernel more = m.kernel(program, "more");
  bytes model = pattern(size, 11);
  cl_mem buffer = m.buffer(model, CL_MEM_READ_WRITE | CL_MEM_COPY_HOST_PTR);
  set_arguments(more, buffer);
  for (std::uint32_t round = 0; round < 6; ++round) {
    auto* const all = static_cast<std::uint8_t*>(map(m, buffer, CL_MAP_READ | CL_MAP_WRITE, 0, size));
    REQUIRE(std::memcmp(all, model.data(), size) == 0);
    all[round * 1000] = model[round * 1000] = static_cast<std::uint8_t>(round);
    unmap(m, buffer, all);
    CHECK_CL(clEnqueueNDRangeKernel(m.queue, more, 1, nullptr, &size, nullptr, 0, nullptr, nullptr));
    for (std::uint8_t& each : model) each = static_cast<std::uint8_t>(each + 3);
    // Maps two overlapping parts for reading, and a third for overwriting.
    void* const low = map(m, buffer, CL_MAP_READ, 0, mib + 100);
    void* const high = map(m, buffer, CL_MAP_READ, mib, mib);
    REQUIRE(std::memcmp(low, model.data(), mib + 100) == 0);
    REQUIRE(std::memcmp(high, model.data() + mib, mib) == 0);
    unmap(m, buffer, low);
    unmap(m, buffer, high);
    const bytes fresh = pattern(300 * kib, round);
    void* const written = map(m, buffer, CL_MAP_WRITE_INVALIDATE_REGION, 700 * kib, fresh.size());
    std::memcpy(written, fresh.data(), fresh.size());
    unmap(m, buffer, written);
    std::copy(fresh.begin(), fresh.end(), model.begin() + 700 * kib);
    bytes back(size);
    CHECK_CL(clEnqueueReadBuffer(m.queue, buffer, CL_TRUE, 0, size, back.data(), 0, nullptr, nullptr));
    REQUIRE(back == model);
  }
  cl_int code = CL_SUCCESS;
  cl_event shown = nullptr;
  void* const later =
      clEnqueueMapBuffer(m.queue, buffer, CL_FALSE, CL_MAP_READ, 0, size, 0, nullptr, &shown, &code);
  CHECK_CL(code);
  CHECK_CL(clWaitForEvents(1, &shown));
  REQUIRE(std::memcmp(later, model.data(), size) == 0);
  say("maps", model);
  unmap(m, buffer, later);
  void* const last = map(m, buffer, CL_MAP_WRITE, 0, size);
  std::memset(last, 1, size);
  unmap(m, buffer, last);
  CHECK_CL(clReleaseEvent(shown));
  CHECK_CL(clReleaseKernel(more));
  CHECK_CL(clReleaseProgram(program));
  CHECK_CL(clReleaseMemObject(buffer));  // while its bytes are under way
}

/// A region of pixels of four bytes, and host memory for it whose rows are `gap` bytes longer.
struct pixels {
  cl_mem image = nullptr;
  std::size_t origin[3] = {}, region[3] = {}, gap = 0;

  std::size_t row() const { return region[0] * 4 + gap; }
  std::size_t slice() const { return row() * region[1]; }
  std::size_t size() const { return slice() * region[2]; }
  /// The transfer's bytes in memory with these pitches, and the host's bytes as they are.
  bool same(const std::uint8_t* a, std::size_t row_of_a, std::size_t slice_of_a, const bytes& b) const {
    for (std::size_t z = 0; z < region[2]; ++z)
      for (std::size_t y = 0; y < region[1]; ++y)
        if (std::memcmp(a + z * slice_of_a + y * row_of_a, &b[z * slice() + y * row()], region[0] * 4) != 0)
          return false;
    return true;
  }
  bool same(const bytes& a, const bytes& b) const { return same(a.data(), row(), slice(), b); }
  std::uint8_t* map(const machine& m, cl_map_flags flags, std::size_t& row, std::size_t& slice) const {
    cl_int code = CL_SUCCESS;
    void* const at = clEnqueueMapImage(m.queue, image, CL_TRUE, flags, origin, region, &row, &slice, 0,
                                       nullptr, nullptr, &code);
    CHECK_CL(code);
    return static_cast<std::uint8_t*>(at);
  }
};

void through_an_image(const machine& m, const pixels& p, std::uint32_t seed) {
  const std::size_t slice_here = p.region[2] > 1 ? p.slice() : 0;
  bytes sent = pattern(p.size(), seed), back(sent.size());
  for (int round = 0; round < 3; ++round) {
    sent = pattern(p.size(), seed + static_cast<std::uint32_t>(round));
    CHECK_CL(clEnqueueWriteImage(m.queue, p.image, CL_FALSE, p.origin, p.region, p.row(), slice_here,
                                 sent.data(), 0, nullptr, nullptr));
    std::fill(back.begin(), back.end(), 0);
    CHECK_CL(clEnqueueReadImage(m.queue, p.image, round % 2, p.origin, p.region, p.row(), slice_here,
                                back.data(), 0, nullptr, nullptr));
    CHECK_CL(clFinish(m.queue));
    REQUIRE(p.same(back, sent));
    // Bytes between rows belong to the program and must not change.
    for (std::size_t y = 0; p.gap && y + 1 < p.region[1]; ++y) REQUIRE(back[(y + 1) * p.row() - 1] == 0);
  }
  std::size_t row = 0, slice = 0;
  std::uint8_t* at = p.map(m, CL_MAP_READ | CL_MAP_WRITE, row, slice);
  REQUIRE(p.same(at, row, slice, sent));
  at[row + 5] = sent[p.row() + 5] = 99;
  CHECK_CL(clEnqueueUnmapMemObject(m.queue, p.image, at, 0, nullptr, nullptr));
  // Overwrites behind a gate, for which only the device waits.
  cl_int code = CL_SUCCESS;
  cl_event gate = clCreateUserEvent(m.context, &code);
  CHECK_CL(code);
  cl_command_queue behind = queue_of(m, 0);
  void* const unseen = clEnqueueMapImage(behind, p.image, CL_FALSE, CL_MAP_WRITE_INVALIDATE_REGION, p.origin,
                                         p.region, &row, &slice, 1, &gate, nullptr, &code);
  CHECK_CL(code);
  CHECK_CL(clSetUserEventStatus(gate, CL_COMPLETE));
  CHECK_CL(clFinish(behind));
  for (std::size_t z = 0; z < p.region[2]; ++z)
    for (std::size_t y = 0; y < p.region[1]; ++y)
      std::memcpy(static_cast<std::uint8_t*>(unseen) + z * slice + y * row,
                  &sent[z * p.slice() + y * p.row()], p.region[0] * 4);
  CHECK_CL(clEnqueueUnmapMemObject(behind, p.image, unseen, 0, nullptr, nullptr));
  CHECK_CL(clFinish(behind));
  CHECK_CL(clReleaseEvent(gate));
  CHECK_CL(clReleaseCommandQueue(behind));
  pixels part = p;
  part.gap = 0, part.origin[1] += 1, part.region[1] -= 1, part.region[2] = 1;
  const bytes fresh = pattern(part.size(), seed + 9);
  at = part.map(m, CL_MAP_WRITE_INVALIDATE_REGION, row, slice);
  for (std::size_t y = 0; y < part.region[1]; ++y) {
    std::copy_n(&fresh[y * part.row()], part.row(), at + y * row);
    std::copy_n(&fresh[y * part.row()], part.row(), &sent[(y + 1) * p.row()]);
  }
  CHECK_CL(clEnqueueUnmapMemObject(m.queue, p.image, at, 0, nullptr, nullptr));
  CHECK_CL(clEnqueueReadImage(m.queue, p.image, CL_TRUE, p.origin, p.region, p.row(), slice_here, back.data(),
                              0, nullptr, nullptr));
  REQUIRE(p.same(back, sent));
}

/// Images are transferred in parts of whole rows or slices.
void images(const machine& m) {
  cl_bool has = CL_FALSE;
  CHECK_CL(clGetDeviceInfo(m.device, CL_DEVICE_IMAGE_SUPPORT, sizeof has, &has, nullptr));
  if (!has) return;
  struct {
    cl_mem_object_type type;
    std::size_t width, height, depth;
  } const shapes[] = {{CL_MEM_OBJECT_IMAGE2D, 500, 400, 1},
                      {CL_MEM_OBJECT_IMAGE2D, 1500, 1100, 1},
                      {CL_MEM_OBJECT_IMAGE3D, 700, 500, 6},
                      {CL_MEM_OBJECT_IMAGE2D_ARRAY, 256, 199, 41}};
  std::uint32_t seed = 6;
  for (const auto& each : shapes) {
    const cl_image_format format{CL_RGBA, CL_UNSIGNED_INT8};
    cl_image_desc shape{};
    shape.image_type = each.type;
    shape.image_width = each.width, shape.image_height = each.height;
    const bool array = each.type == CL_MEM_OBJECT_IMAGE2D_ARRAY;
    (array ? shape.image_array_size : shape.image_depth) = array || each.depth > 1 ? each.depth : 0;
    cl_int code = CL_SUCCESS;
    pixels p;
    p.image = clCreateImage(m.context, CL_MEM_READ_WRITE, &format, &shape, nullptr, &code);
    CHECK_CL(code);
    p.region[0] = each.width, p.region[1] = each.height, p.region[2] = each.depth;
    through_an_image(m, p, ++seed);
    p.gap = 48;
    through_an_image(m, p, ++seed);
    p.origin[0] = 3, p.origin[1] = 7, p.origin[2] = each.depth > 1;
    for (int i = 0; i < 3; ++i) p.region[i] -= p.origin[i];
    through_an_image(m, p, ++seed);
    CHECK_CL(clReleaseMemObject(p.image));
  }
  std::printf("%u images\n", seed);
}

/// Runs rounds of large writes, reads and maps.
void much(const machine& m, int rounds) {
  constexpr std::size_t size = 16 * mib;
  const bytes sent = pattern(size, 12);
  cl_mem buffer = room(m.context, size);
  for (int round = 0; round < rounds; ++round) {
    there_and_back(m, m.queue, size, 13);
    auto* const all = static_cast<std::uint8_t*>(map(m, buffer, CL_MAP_WRITE_INVALIDATE_REGION, 0, size));
    std::copy(sent.begin(), sent.end(), all);
    unmap(m, buffer, all);
    void* const seen = map(m, buffer, CL_MAP_READ, 0, size);
    REQUIRE(std::memcmp(seen, sent.data(), size) == 0);
    unmap(m, buffer, seen);
  }
  say("much", sent);
  CHECK_CL(clReleaseMemObject(buffer));
}

}  // namespace

/// `rows`: only a single thread's rows and maps. `much N`: only N rounds of large transfers.
int main(int count, char** words) {
  const bool rows = count > 1 && std::strcmp(words[1], "rows") == 0;
  if (count > 2 && std::strcmp(words[1], "much") == 0) {
    const machine m;
    much(m, std::atoi(words[2]));
    return 0;
  }
  for (int life = 0; life < 2; ++life) {
    const machine m;
    every_size(m);
    maps(m);
    if (rows) continue;
    behind_a_gate(m);
    let_go_unseen(m);
    large_behind_a_gate(m);
    beside_reads_that_come(m);
    told_without_a_wait(m);
    threads(m);
    as_one(m);
    boxes(m);
    images(m);
  }
}
