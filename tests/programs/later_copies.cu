// Large copies to page-locked memory that the program does not wait for: every byte is there when it is told
// that they are complete, however it asks; in the order of their streams, one stream's not behind another's,
// and with a reset, a free or a return from main() coming soon after.
#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstring>
#include <thread>

#include "common.hh"

namespace {

constexpr std::size_t words = 5u << 20, bytes = words * sizeof(std::uint32_t);

/// Four at a time: on the cpu device, where each instruction costs, that takes a third of the time.
__global__ void number(std::uint32_t* x, std::uint32_t first) {
  for (std::size_t i = blockIdx.x * std::size_t{blockDim.x} + threadIdx.x; i < words / 4;
       i += std::size_t{gridDim.x} * blockDim.x) {
    const std::uint32_t at = first + 4 * static_cast<std::uint32_t>(i);
    reinterpret_cast<uint4*>(x)[i] = make_uint4(at, at + 1, at + 2, at + 3);
  }
}

bool numbered(const std::uint32_t* x, std::uint32_t first, std::size_t count = words) {
  for (std::size_t i = 0; i < count; ++i) {
    if (x[i] != first + i) return false;
  }
  return true;
}

struct buffers {
  std::uint32_t *device = nullptr, *host = nullptr;
  cudaStream_t stream = nullptr;
  explicit buffers(bool registered = false) {
    MUST(cudaMalloc(&device, bytes));
    MUST(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
    if (registered) {
      own.resize(words + 1024);
      host = own.data() + 5;
      MUST(cudaHostRegister(own.data(), own.size() * sizeof own[0], cudaHostRegisterDefault));
    } else {
      MUST(cudaMallocHost(&host, bytes));
    }
  }
  void release() {
    MUST(own.empty() ? cudaFreeHost(host) : cudaHostUnregister(own.data()));
    MUST(cudaStreamDestroy(stream));
    MUST(cudaFree(device));
  }
  void copy(std::uint32_t first) {
    number<<<64, 256, 0, stream>>>(device, first);
    MUST(cudaMemcpyAsync(host, device, bytes, cudaMemcpyDeviceToHost, stream));
  }
  std::vector<std::uint32_t> own;
};

void however_it_asks(bool registered) {
  buffers b(registered);
  cudaEvent_t event;
  MUST(cudaEventCreateWithFlags(&event, cudaEventDisableTiming));
  for (std::uint32_t turn = 0; turn < 12; ++turn) {
    b.copy(turn * 1000);
    switch (turn % 6) {
      case 0:
        MUST(cudaStreamSynchronize(b.stream));
        break;
      case 1:
        MUST(cudaDeviceSynchronize());
        break;
      case 2:
        MUST(cudaEventRecord(event, b.stream));
        MUST(cudaEventSynchronize(event));
        break;
      case 3:
        MUST(cudaEventRecord(event, b.stream));
        while (cudaEventQuery(event) == cudaErrorNotReady) {
        }
        break;
      case 4:
        while (cudaStreamQuery(b.stream) == cudaErrorNotReady) {
        }
        break;
      default: {
        std::atomic<int> seen{0};
        struct question {
          buffers* b;
          std::uint32_t first;
          std::atomic<int>* answer;
        } q{&b, turn * 1000, &seen};
        MUST(cudaLaunchHostFunc(
            b.stream,
            [](void* data) {
              auto* asked = static_cast<question*>(data);
              *asked->answer = numbered(asked->b->host, asked->first) ? 1 : 2;
            },
            &q));
        MUST(cudaStreamSynchronize(b.stream));
        EXPECT(seen == 1);
      }
    }
    EXPECT(numbered(b.host, turn * 1000));
  }
  MUST(cudaEventDestroy(event));
  b.release();
}

/// Several at a time, asked for in another order than they were begun; two into one place of the memory.
void several(bool registered) {
  buffers b[3] = {buffers(registered), buffers(registered), buffers(registered)};
  for (std::uint32_t turn = 0; turn < 4; ++turn) {
    for (std::uint32_t i = 0; i < 3; ++i) b[i].copy(turn + i * 100);
    b[1].copy(turn + 7777);
    for (int i : {2, 0, 1}) {
      MUST(cudaStreamSynchronize(b[i].stream));
      EXPECT(numbered(b[i].host, i == 1 ? turn + 7777 : turn + i * 100));
    }
  }
  for (auto& one : b) one.release();
}

/// A copy whose stream waits for the host lies before another one, which is asked for.
void one_stream_that_is_held_up(bool registered) {
  buffers held(registered), free(registered);
  std::atomic<bool> go{false};
  for (int turn = 0; turn < 3; ++turn) {
    go = false;
    MUST(cudaLaunchHostFunc(
        held.stream,
        [](void* data) {
          while (!*static_cast<std::atomic<bool>*>(data)) std::this_thread::yield();
        },
        &go));
    held.copy(1);
    for (int i = 0; i < 6; ++i) free.copy(2 + i);
    MUST(cudaStreamSynchronize(free.stream));
    EXPECT(numbered(free.host, 7));
    go = true;
    MUST(cudaStreamSynchronize(held.stream));
    EXPECT(numbered(held.host, 1));
  }
  held.release();
  free.release();
}

/// Rows with gaps, which stay as they are.
void rows() {
  buffers b;
  constexpr std::size_t width = 3000, pitch = 4096, lines = bytes / pitch;
  std::memset(b.host, 77, bytes);
  number<<<64, 256, 0, b.stream>>>(b.device, 5);
  MUST(cudaMemcpy2DAsync(b.host, pitch, b.device, width, width, lines, cudaMemcpyDeviceToHost, b.stream));
  MUST(cudaStreamSynchronize(b.stream));
  const auto* at = reinterpret_cast<const std::uint8_t*>(b.host);
  for (std::size_t line = 0; line < lines; ++line) {
    EXPECT(numbered(reinterpret_cast<const std::uint32_t*>(at + line * pitch),
                    5 + static_cast<std::uint32_t>(line * width / 4), width / 4));
    for (std::size_t i = width; i < pitch; ++i) EXPECT(at[line * pitch + i] == 77);
  }
  b.release();
}

/// What is read from is what an earlier copy, of any size, has brought; and what was brought small is not
/// overwritten by what was asked for large before.
void to_and_fro() {
  buffers b(true);
  std::uint32_t* second = nullptr;
  MUST(cudaMalloc(&second, bytes));
  for (std::uint32_t turn = 0; turn < 6; ++turn) {
    b.copy(turn * 10);
    MUST(cudaMemcpyAsync(second, b.host, bytes, cudaMemcpyHostToDevice, b.stream));
    number<<<64, 256, 0, b.stream>>>(b.device, 5000 + turn);
    MUST(cudaMemcpyAsync(b.host, b.device, 4096, cudaMemcpyDeviceToHost, b.stream));
    MUST(cudaStreamSynchronize(b.stream));
    EXPECT(numbered(b.host, 5000 + turn, 1024));
    EXPECT(numbered(b.host + 1024, turn * 10 + 1024, words - 1024));
    MUST(cudaMemcpyAsync(b.host, second, bytes, cudaMemcpyDeviceToHost, b.stream));
    MUST(cudaStreamSynchronize(b.stream));
    EXPECT(numbered(b.host, turn * 10));
  }
  MUST(cudaFree(second));
  b.release();
}

/// A large copy and a small one to the same place, with nothing between that waits: the later one stays,
/// whichever way its bytes take.
void right_behind_each_other(bool registered) {
  buffers b(registered);
  constexpr std::size_t few = 1024;
  constexpr auto host = cudaMemcpyDeviceToHost;
  std::uint32_t* other = nullptr;
  MUST(cudaMalloc(&other, bytes));
  number<<<64, 256, 0, b.stream>>>(other, 90'000'000);
  for (std::uint32_t turn = 0; turn < 2; ++turn) {
    for (const std::size_t at : {std::size_t{0}, words - few}) {
      b.copy(turn);
      MUST(cudaMemcpyAsync(b.host + at, other, few * sizeof *other, host, b.stream));
      MUST(cudaStreamSynchronize(b.stream));
      EXPECT(numbered(b.host + at, 90'000'000, few));
      EXPECT(numbered(b.host + few, turn + few, words - 2 * few));
      MUST(cudaMemcpyAsync(b.host + at, other, few * sizeof *other, host, b.stream));
      MUST(cudaMemcpyAsync(b.host, b.device, bytes, host, b.stream));
      MUST(cudaStreamSynchronize(b.stream));
      EXPECT(numbered(b.host, turn));
      MUST(cudaMemcpyAsync(b.host + at, other, few * sizeof *other, host));
      MUST(cudaMemcpy(b.host, b.device, bytes, host));
      MUST(cudaDeviceSynchronize());
      EXPECT(numbered(b.host, turn));
    }
  }
  MUST(cudaFree(other));
  b.release();
}

/// More than any side keeps for it, while this thread asks nothing: the device gets on, as natively.
void much_and_no_question() {
  buffers b(true);
  std::atomic<bool> told{false};
  for (std::uint32_t i = 0; i < 10; ++i) b.copy(i);
  MUST(cudaLaunchHostFunc(
      b.stream, [](void* flag) { *static_cast<std::atomic<bool>*>(flag) = true; }, &told));
  for (int i = 0; i < 60'000 && !told; ++i) std::this_thread::sleep_for(std::chrono::milliseconds(1));
  EXPECT(told);
  EXPECT(numbered(b.host, 9));
  MUST(cudaStreamSynchronize(b.stream));
  b.release();
}

void from_several_threads() {
  std::vector<std::thread> threads;
  for (std::uint32_t n = 0; n < 3; ++n) {
    threads.emplace_back([n] {
      buffers b(n % 2 == 1);
      for (std::uint32_t turn = 0; turn < 4; ++turn) {
        b.copy(turn * 10 + n);
        MUST(cudaStreamSynchronize(b.stream));
        EXPECT(numbered(b.host, turn * 10 + n));
      }
      b.release();
    });
  }
  for (auto& t : threads) t.join();
}

/// A graph's copy to memory that was page-locked after the graph was made, before and behind later copies to
/// the same place: it comes another way than they do.
void around_a_graph() {
  constexpr std::size_t at = words / 2, few = 1024;
  buffers b(true);
  MUST(cudaHostUnregister(b.own.data()));
  std::uint32_t* small;
  MUST(cudaMalloc(&small, few * sizeof *small));
  cudaGraph_t graph;
  cudaGraphExec_t exec;
  cudaGraphNode_t node;
  MUST(cudaGraphCreate(&graph, 0));
  MUST(cudaGraphAddMemcpyNode1D(&node, graph, nullptr, 0, b.host + at, small, few * sizeof *small,
                                cudaMemcpyDeviceToHost));
  MUST(cudaGraphInstantiate(&exec, graph, 0));
  MUST(cudaHostRegister(b.own.data(), b.own.size() * sizeof b.own[0], cudaHostRegisterDefault));
  for (std::uint32_t turn = 0; turn < 10; ++turn) {
    MUST(cudaMemsetAsync(small, 0xa0 + static_cast<int>(turn), few * sizeof *small, b.stream));
    b.copy(turn);
    MUST(cudaGraphLaunch(exec, b.stream));
    MUST(cudaStreamSynchronize(b.stream));
    const std::uint32_t mark = 0x01010101u * (0xa0 + turn);
    EXPECT(std::all_of(b.host + at, b.host + at + few, [&](std::uint32_t x) { return x == mark; }));
    EXPECT(numbered(b.host, turn, at) && numbered(b.host + at + few, turn + at + few, words - at - few));
    MUST(cudaGraphLaunch(exec, b.stream));
    b.copy(turn + 1);
    MUST(cudaStreamSynchronize(b.stream));
    EXPECT(numbered(b.host, turn + 1));
  }
  MUST(cudaGraphExecDestroy(exec));
  MUST(cudaGraphDestroy(graph));
  MUST(cudaFree(small));
  b.release();
}

/// What is freed or reset is not written any more; memory that is freed may be used again at once.
void soon_gone() {
  for (std::uint32_t turn = 0; turn < 4; ++turn) {
    buffers b(turn >= 2);
    b.copy(turn);
    b.copy(turn + 1);
    if (turn % 2) {
      MUST(cudaDeviceReset());
    } else {
      b.release();
    }
    buffers next;
    std::memset(next.host, 3, bytes);
    MUST(cudaDeviceSynchronize());
    for (std::size_t i = 0; i < words; ++i) EXPECT(next.host[i] == 0x03030303u);
    next.copy(9);
    MUST(cudaStreamSynchronize(next.stream));
    EXPECT(numbered(next.host, 9));
    next.release();
  }
}

}  // namespace

int main() {
  however_it_asks(false);
  however_it_asks(true);
  for (bool registered : {false, true}) {
    several(registered);
    one_stream_that_is_held_up(registered);
  }
  to_and_fro();
  right_behind_each_other(false);
  right_behind_each_other(true);
  much_and_no_question();
  rows();
  from_several_threads();
  around_a_graph();
  soon_gone();
  static buffers last;
  for (int i = 0; i < 4; ++i) last.copy(i);
  return pass("later_copies");  // with copies under way
}
