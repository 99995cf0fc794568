// Many bytes on their way, in both directions at once, while no thread of the program waits for anything: it
// asks for what it reads, and writes, and looks at neither before all is asked for.
#include <algorithm>
#include <cstdint>
#include <cstring>
#include <thread>

#include "program.hh"

namespace {

constexpr std::size_t size = 24u << 20;
constexpr int rounds = 3;
using bytes = std::vector<std::uint8_t>;

/// Four bytes at a time: with a number for each byte they took half of the test.
bytes pattern(std::uint32_t seed) {
  bytes made(size);
  for (std::size_t at = 0; at < size; at += sizeof seed) {
    seed = seed * 1664525 + 1013904223;
    std::memcpy(made.data() + at, &seed, sizeof seed);
  }
  return made;
}

/// Each round reads what the one before has written.
void back_and_forth(const machine& m, std::uint32_t seed) {
  cl_int code = CL_SUCCESS;
  cl_command_queue queue = clCreateCommandQueue(m.context, m.device, 0, &code);
  CHECK_CL(code);
  bytes sent[rounds], back[rounds], first = pattern(seed);
  cl_mem buffer = m.buffer(first, CL_MEM_READ_WRITE | CL_MEM_COPY_HOST_PTR);
  for (int i = 0; i < rounds; ++i) sent[i] = pattern(seed + 1 + i), back[i].resize(size);
  for (int i = 0; i < rounds; ++i) {
    CHECK_CL(clEnqueueReadBuffer(queue, buffer, CL_FALSE, 0, size, back[i].data(), 0, nullptr, nullptr));
    CHECK_CL(clEnqueueWriteBuffer(queue, buffer, CL_FALSE, 0, size, sent[i].data(), 0, nullptr, nullptr));
  }
  CHECK_CL(clFinish(queue));
  for (int i = 0; i < rounds; ++i) REQUIRE(back[i] == (i == 0 ? first : sent[i - 1]));
  CHECK_CL(clReleaseMemObject(buffer));
  CHECK_CL(clReleaseCommandQueue(queue));
}

/// Nobody waits for one before the next: the device is behind all the time.
void one_after_the_other(const machine& m) {
  constexpr int writes = 6;
  bytes sent[writes], back(size);
  cl_mem buffers[writes];
  for (int i = 0; i < writes; ++i) sent[i] = pattern(300 + i), buffers[i] = m.buffer(back, CL_MEM_READ_WRITE);
  for (int i = 0; i < writes; ++i)
    CHECK_CL(
        clEnqueueWriteBuffer(m.queue, buffers[i], CL_FALSE, 0, size, sent[i].data(), 0, nullptr, nullptr));
  for (int i = 0; i < writes; ++i) {
    CHECK_CL(clEnqueueReadBuffer(m.queue, buffers[i], CL_TRUE, 0, size, back.data(), 0, nullptr, nullptr));
    REQUIRE(back == sent[i]);
    CHECK_CL(clReleaseMemObject(buffers[i]));
  }
}

}  // namespace

int main() {
  const machine m;
  for (int round = 0; round < 3; ++round) one_after_the_other(m);
  std::printf("in a row\n");
  back_and_forth(m, 1);
  std::printf("alone\n");
  std::thread other([&] { back_and_forth(m, 100); });
  back_and_forth(m, 200);
  other.join();
  std::printf("beside another thread\n");
}
