// Copies of memory on a device that is not the current one, before and after peer access: each shape, in
// streams of either device, and how synchronous copies are ordered with that device's work. Fills need
// access.
#include <cuda_runtime.h>

#include <cstring>

#include "common.hh"

__global__ void fill_late(unsigned* at, int count, unsigned value, long long cycles) {
  const long long begin = clock64();
  while (clock64() - begin < cycles) {
  }
  for (int i = threadIdx.x; i < count; i += blockDim.x) at[i] = value;
}

namespace {

constexpr int words = 1 << 16, bytes = words * 4, row = 1024, rows = bytes / row;
constexpr long long late = 40'000'000;  // some 20 ms: more than a copy that does not wait takes

struct device {
  unsigned *a = nullptr, *b = nullptr;
  cudaStream_t stream = nullptr;

  explicit device(int number) {
    MUST(cudaSetDevice(number));
    MUST(cudaMalloc(&a, bytes));
    MUST(cudaMalloc(&b, bytes));
    MUST(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
    fill_late<<<1, 32>>>(a, 32, 0, 0);  // loads the code
    MUST(cudaDeviceSynchronize());
  }
};

struct pair {
  int here, there;
  const device &mine, &its;
  unsigned* pinned;

  std::vector<unsigned> of(unsigned value) const { return std::vector<unsigned>(words, value); }
  /// Uses the device's own copies, so that nothing else does the operation under test.
  void set(int number, unsigned* at, unsigned value) const {
    MUST(cudaSetDevice(number));
    MUST(cudaMemcpy(at, of(value).data(), bytes, cudaMemcpyHostToDevice));
    MUST(cudaDeviceSynchronize());
    MUST(cudaSetDevice(here));
  }
  void is(int number, const unsigned* at, unsigned value) const {
    std::vector<unsigned> got(words);
    MUST(cudaSetDevice(number));
    MUST(cudaDeviceSynchronize());
    MUST(cudaMemcpy(got.data(), at, bytes, cudaMemcpyDeviceToHost));
    MUST(cudaSetDevice(here));
    EXPECT(got == of(value));
  }
  void fill_late_there(unsigned value) const {
    MUST(cudaSetDevice(there));
    fill_late<<<1, 256>>>(its.a, words, value, late);
    MUST(cudaGetLastError());
    MUST(cudaSetDevice(here));
  }
};

void to_and_from_the_host(const pair& p, cudaStream_t stream) {
  std::vector<unsigned> host = p.of(1);
  MUST(cudaMemcpy(p.its.a, host.data(), bytes, cudaMemcpyHostToDevice));
  p.is(p.there, p.its.a, 1);
  std::memcpy(p.pinned, p.of(2).data(), bytes);
  MUST(cudaMemcpyAsync(p.its.a, p.pinned, bytes, cudaMemcpyDefault, stream));
  MUST(cudaStreamSynchronize(stream));
  p.is(p.there, p.its.a, 2);
  MUST(cudaMemcpyAsync(p.its.a, p.of(3).data(), bytes, cudaMemcpyHostToDevice, stream));
  MUST(cudaMemcpy2DAsync(p.pinned, row, p.its.a, row, row, rows, cudaMemcpyDeviceToHost, stream));
  MUST(cudaMemcpyAsync(host.data(), p.its.a, bytes, cudaMemcpyDeviceToHost, stream));
  MUST(cudaStreamSynchronize(stream));
  EXPECT(host == p.of(3) && std::vector<unsigned>(p.pinned, p.pinned + words) == p.of(3));
  std::memset(p.pinned, 0, bytes);
  MUST(cudaMemcpyAsync(p.pinned, p.its.a, bytes, cudaMemcpyDefault, stream));
  MUST(cudaStreamSynchronize(stream));
  EXPECT(std::vector<unsigned>(p.pinned, p.pinned + words) == p.of(3));
  host = p.of(4);
  MUST(cudaMemcpy2DAsync(p.its.a, row, host.data(), row, row, rows, cudaMemcpyHostToDevice, stream));
  MUST(cudaStreamSynchronize(stream));
  p.is(p.there, p.its.a, 4);
}

void between_devices(const pair& p, cudaStream_t stream) {
  p.set(p.there, p.its.a, 5);
  MUST(cudaMemcpy(p.mine.a, p.its.a, bytes, cudaMemcpyDeviceToDevice));
  p.is(p.here, p.mine.a, 5);
  p.set(p.here, p.mine.a, 6);
  MUST(cudaMemcpyAsync(p.its.a, p.mine.a, bytes, cudaMemcpyDefault, stream));
  MUST(cudaMemcpyAsync(p.its.b, p.its.a, bytes, cudaMemcpyDefault, stream));
  MUST(cudaStreamSynchronize(stream));
  p.is(p.there, p.its.b, 6);
  p.set(p.here, p.mine.a, 7);
  MUST(cudaMemcpy2DAsync(p.its.a, row, p.mine.a, row, row, rows, cudaMemcpyDefault, stream));
  MUST(cudaStreamSynchronize(stream));
  p.is(p.there, p.its.a, 7);
}

void large(const pair& p) {
  constexpr std::size_t size = 9u << 20;
  std::vector<unsigned char> host(size, 8);
  unsigned char* there = nullptr;
  MUST(cudaSetDevice(p.there));
  MUST(cudaMalloc(&there, size));
  MUST(cudaSetDevice(p.here));
  MUST(cudaMemcpy(there, host.data(), size, cudaMemcpyHostToDevice));
  std::memset(host.data(), 0, size);
  MUST(cudaMemcpy(host.data(), there, size, cudaMemcpyDeviceToHost));
  EXPECT(host == std::vector<unsigned char>(size, 8));
  MUST(cudaFree(there));
}

/// Work in that device's default stream comes first.
void order(const pair& p) {
  std::vector<unsigned> host(words);
  p.fill_late_there(10);
  MUST(cudaMemcpy(host.data(), p.its.a, bytes, cudaMemcpyDeviceToHost));
  EXPECT(host == p.of(10));
  p.fill_late_there(11);
  MUST(cudaMemcpy(p.mine.a, p.its.a, bytes, cudaMemcpyDefault));
  p.is(p.here, p.mine.a, 11);
  p.fill_late_there(12);
  MUST(cudaMemcpy(p.its.a, p.of(13).data(), bytes, cudaMemcpyHostToDevice));
  p.is(p.there, p.its.a, 13);
}

void fills(const pair& p, bool access) {
  const cudaError_t expected = access ? cudaSuccess : cudaErrorInvalidValue;
  EXPECT(cudaMemset(p.its.a, 1, bytes) == expected);
  EXPECT(cudaGetLastError() == expected);
  EXPECT(cudaMemsetAsync(p.its.a, 1, bytes, p.mine.stream) == expected);
  EXPECT(cudaGetLastError() == expected);
  MUST(cudaMemsetAsync(p.its.a, 1, bytes, p.its.stream));
  MUST(cudaStreamSynchronize(p.its.stream));
  p.is(p.there, p.its.a, 0x01010101);
}

void all_of_it(const device& first, const device& second, unsigned* pinned, bool access) {
  for (const pair& p : {pair{0, 1, first, second, pinned}, pair{1, 0, second, first, pinned}}) {
    MUST(cudaSetDevice(p.here));
    for (cudaStream_t stream : {p.mine.stream, p.its.stream}) {
      to_and_from_the_host(p, stream);
      between_devices(p, stream);
    }
    large(p);
    order(p);
    fills(p, access);
  }
}

}  // namespace

int main() {
  int devices = 0, can = 0;
  MUST(cudaGetDeviceCount(&devices));
  if (devices < 2) {
    std::printf("one device: left out\n");
    return pass("other_device");
  }
  const device first(0), second(1);
  unsigned* pinned = nullptr;
  MUST(cudaMallocHost(&pinned, bytes));
  all_of_it(first, second, pinned, false);
  MUST(cudaDeviceCanAccessPeer(&can, 0, 1));
  if (can) {
    MUST(cudaSetDevice(0));
    MUST(cudaDeviceEnablePeerAccess(1, 0));
    MUST(cudaSetDevice(1));
    MUST(cudaDeviceEnablePeerAccess(0, 0));
    all_of_it(first, second, pinned, true);
  }
  return pass("other_device");
}
