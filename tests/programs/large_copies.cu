// Large copies from and to pageable and registered memory: every byte, in the order of the streams, with the
// source free to change when the call returns; across a reset, from several threads, and with the right code
// after a fault.
#include <algorithm>
#include <cstring>
#include <thread>

#include "common.hh"

namespace {

constexpr std::size_t most = 24u << 20;

/// Four at a time: on the cpu device, where each instruction costs, that takes less time. n is a multiple
/// of 4.
__global__ void add(std::uint32_t* x, std::size_t n, std::uint32_t what) {
  for (std::size_t i = blockIdx.x * std::size_t{blockDim.x} + threadIdx.x; i < n / 4;
       i += std::size_t{gridDim.x} * blockDim.x) {
    uint4 four = reinterpret_cast<uint4*>(x)[i];
    four.x += what, four.y += what, four.z += what, four.w += what;
    reinterpret_cast<uint4*>(x)[i] = four;
  }
}

__global__ void wild(std::uint32_t* x) { *x = 1; }

std::vector<std::uint8_t> some_bytes(std::size_t size, std::uint32_t seed) {
  numbers random{seed};
  std::vector<std::uint8_t> bytes(size);
  for (std::size_t i = 0; i + 4 <= size; i += 4) {
    const std::uint32_t word = random.next();
    std::memcpy(&bytes[i], &word, sizeof word);
  }
  return bytes;
}

/// Sizes around every edge, at odd places; what lies around is not touched.
void edges(cudaStream_t stream, bool asynchronous) {
  std::uint8_t* device;
  MUST(cudaMalloc(&device, most + 64));
  const auto source = some_bytes(most + 64, 1);
  for (const std::size_t size :
       {std::size_t{65536}, std::size_t{131071}, std::size_t{131072}, std::size_t{131073},
        std::size_t{196608}, std::size_t{1u << 20}, std::size_t{(1u << 20) + 1}, std::size_t{16u << 20},
        std::size_t{(17u << 20) + 4095}, most}) {
    std::vector<std::uint8_t> back(size + 2, 77);
    MUST(cudaMemset(device, 55, most + 64));
    if (asynchronous) {
      MUST(cudaMemcpyAsync(device + 5, &source[3], size, cudaMemcpyHostToDevice, stream));
      MUST(cudaMemcpyAsync(&back[1], device + 5, size, cudaMemcpyDeviceToHost, stream));
      MUST(cudaStreamSynchronize(stream));
    } else {
      MUST(cudaMemcpy(device + 5, &source[3], size, cudaMemcpyHostToDevice));
      MUST(cudaMemcpy(&back[1], device + 5, size, cudaMemcpyDeviceToHost));
    }
    EXPECT(std::memcmp(&back[1], &source[3], size) == 0);
    EXPECT(back[0] == 77 && back[size + 1] == 77);
    std::uint8_t around[2] = {};
    MUST(cudaMemcpy(&around[0], device + 4, 1, cudaMemcpyDeviceToHost));
    MUST(cudaMemcpy(&around[1], device + 5 + size, 1, cudaMemcpyDeviceToHost));
    EXPECT(around[0] == 55 && around[1] == 55);
  }
  MUST(cudaFree(device));
}

/// Kernels and copies in turns in one stream; the source changes as soon as the call returns.
void in_order(cudaStream_t stream, std::uint32_t seed) {
  constexpr std::size_t words = 3u << 20;
  std::uint32_t* device;
  MUST(cudaMalloc(&device, words * sizeof *device));
  std::vector<std::uint32_t> host(words), back(words);
  for (std::uint32_t turn = 0; turn < 4; ++turn) {
    for (std::size_t i = 0; i < words; ++i) host[i] = static_cast<std::uint32_t>(i) * 3 + turn + seed;
    MUST(cudaMemcpyAsync(device, host.data(), words * sizeof *device, cudaMemcpyHostToDevice, stream));
    std::fill(host.begin(), host.end(), 0xdeadbeef);
    for (int i = 0; i < 3; ++i) add<<<64, 256, 0, stream>>>(device, words, 1000);
    MUST(cudaMemcpyAsync(back.data(), device, words * sizeof *device, cudaMemcpyDeviceToHost, stream));
    MUST(cudaStreamSynchronize(stream));
    for (std::size_t i = 0; i < words; ++i)
      EXPECT(back[i] == static_cast<std::uint32_t>(i) * 3 + turn + seed + 3000);
  }
  MUST(cudaFree(device));
}

void from_several_threads() {
  std::vector<std::thread> threads;
  for (std::uint32_t n = 0; n < 3; ++n) {
    threads.emplace_back([n] {
      cudaStream_t stream;
      MUST(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
      in_order(stream, n * 7777);
      MUST(cudaStreamDestroy(stream));
    });
  }
  for (auto& t : threads) t.join();
}

void registered() {
  auto memory = some_bytes(most, 9);
  std::vector<std::uint8_t> back(most);
  std::uint8_t* device;
  MUST(cudaMalloc(&device, most));
  MUST(cudaHostRegister(memory.data(), most, cudaHostRegisterDefault));
  MUST(cudaHostRegister(back.data(), most, cudaHostRegisterDefault));
  MUST(cudaMemcpy(device, memory.data(), most, cudaMemcpyHostToDevice));
  MUST(cudaMemcpy(back.data(), device, most, cudaMemcpyDeviceToHost));
  EXPECT(back == memory);
  std::fill(back.begin(), back.end(), 0);
  MUST(cudaMemcpyAsync(device, memory.data(), most, cudaMemcpyHostToDevice));
  MUST(cudaMemcpyAsync(back.data(), device, most, cudaMemcpyDeviceToHost));
  MUST(cudaDeviceSynchronize());
  EXPECT(back == memory);
  MUST(cudaHostUnregister(memory.data()));
  MUST(cudaHostUnregister(back.data()));
  MUST(cudaFree(device));
}

/// The last one: nothing works in this process afterwards.
/// Behind work that takes long: what does not get on is copied another way, and all of it is in order.
void registered_behind_work() {
  constexpr std::size_t words = most / sizeof(std::uint32_t);
  std::vector<std::uint32_t> memory(words), back(words);
  std::uint32_t* device;
  cudaStream_t stream;
  MUST(cudaMalloc(&device, most));
  MUST(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
  MUST(cudaHostRegister(memory.data(), most, cudaHostRegisterDefault));
  for (std::uint32_t turn = 1; turn < 4; ++turn) {
    for (std::size_t i = 0; i < words; ++i) memory[i] = static_cast<std::uint32_t>(i) * turn;
    for (int i = 0; i < 2; ++i) add<<<64, 256, 0, stream>>>(device, words, 1);
    MUST(cudaMemcpyAsync(device, memory.data(), most, cudaMemcpyHostToDevice, stream));
    add<<<64, 256, 0, stream>>>(device, words, 5);
    MUST(cudaStreamSynchronize(stream));
    MUST(cudaMemcpy(back.data(), device, most, cudaMemcpyDeviceToHost));
    for (std::size_t i = 0; i < words; ++i) EXPECT(back[i] == static_cast<std::uint32_t>(i) * turn + 5);
  }
  MUST(cudaHostUnregister(memory.data()));
  MUST(cudaStreamDestroy(stream));
  MUST(cudaFree(device));
}

/// Short copies that are waited for, behind a kernel each, by threads that do the same; the block they may
/// pass through is one.
void short_ones() {
  std::vector<std::thread> threads;
  for (std::uint32_t n = 0; n < 3; ++n) {
    threads.emplace_back([n] {
      constexpr std::size_t words = 20'000;
      std::uint32_t* device;
      MUST(cudaMalloc(&device, words * sizeof *device));
      std::vector<std::uint32_t> host(words);
      for (std::size_t i = 0; i < words; ++i) host[i] = static_cast<std::uint32_t>(i) + n * 1'000'000;
      MUST(cudaMemcpy(device, host.data(), words * sizeof *device, cudaMemcpyHostToDevice));
      std::uint32_t added = 0;
      for (int turn = 0; turn < 30; ++turn) {
        for (const std::size_t count : {255, 256, 257, 1024, 4000, 16384, 16385, 20'000}) {
          add<<<8, 64>>>(device, words, 3), added += 3;
          std::vector<std::uint32_t> back(count + 2, 77);
          const std::size_t from = words - count;
          MUST(cudaMemcpy(&back[1], device + from, count * sizeof *device, cudaMemcpyDeviceToHost));
          EXPECT(back[0] == 77 && back[count + 1] == 77);
          for (std::size_t i = 0; i < count; ++i) EXPECT(back[1 + i] == host[from + i] + added);
        }
      }
      MUST(cudaFree(device));
    });
  }
  for (auto& t : threads) t.join();
}

void after_a_fault() {
  std::uint8_t* device;
  MUST(cudaMalloc(&device, most));
  auto host = some_bytes(most, 3);
  MUST(cudaMemcpy(device, host.data(), most, cudaMemcpyHostToDevice));
  wild<<<1, 1>>>(reinterpret_cast<std::uint32_t*>(0x7f));
  const cudaError_t in = cudaMemcpy(device, host.data(), most, cudaMemcpyHostToDevice);
  const cudaError_t out = cudaMemcpy(host.data(), device, most, cudaMemcpyDeviceToHost);
  EXPECT(in == cudaSuccess || in == cudaErrorMisalignedAddress || in == cudaErrorIllegalAddress);
  EXPECT(out == cudaErrorMisalignedAddress || out == cudaErrorIllegalAddress);
  EXPECT(cudaDeviceSynchronize() == out);
}

}  // namespace

int main() {
  edges(nullptr, false);
  cudaStream_t stream;
  MUST(cudaStreamCreate(&stream));
  edges(stream, true);
  edges(cudaStreamPerThread, true);
  in_order(stream, 0);
  in_order(nullptr, 1);
  MUST(cudaStreamDestroy(stream));
  from_several_threads();
  registered();
  registered_behind_work();
  short_ones();
  MUST(cudaDeviceReset());
  short_ones();
  edges(nullptr, false);
  in_order(nullptr, 2);
  after_a_fault();
  return pass("large_copies");
}
