// Copies more than 4 GiB to the device and back, of which few pages hold data. usage: huge_copies
// [MEGABYTES]
#include <sys/mman.h>

#include <cstring>

#include "../common.hh"

__global__ void mark(unsigned char* x, std::size_t size, std::size_t step) {
  const std::size_t at = (blockIdx.x * std::size_t{blockDim.x} + threadIdx.x) * step;
  if (at < size) x[at] += 1;
}

int main(int count, char** values) {
  const std::size_t size = (static_cast<std::size_t>(argument(count, values, 1, 4200)) << 20) + 4097;
  constexpr std::size_t step = std::size_t{64} << 20;
  auto* host = static_cast<unsigned char*>(
      mmap(nullptr, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0));
  EXPECT(host != MAP_FAILED);
  for (std::size_t at = 0; at < size; at += step) host[at] = static_cast<unsigned char>(at / step);
  host[size - 1] = 77;
  unsigned char* device = nullptr;
  MUST(cudaMalloc(&device, size));
  MUST(cudaMemcpy(device, host, size, cudaMemcpyHostToDevice));
  mark<<<64, 256>>>(device, size, step);
  MUST(cudaGetLastError());
  // The source was only read, so its empty pages are the system's shared page of zeros and take no memory.
  MUST(cudaDeviceSynchronize());
  EXPECT(madvise(host, size / 4096 * 4096, MADV_DONTNEED) == 0);
  MUST(cudaMemcpy(host, device, size, cudaMemcpyDeviceToHost));
  for (std::size_t at = 0; at < size; at += step) {
    EXPECT(host[at] == static_cast<unsigned char>(at / step + 1));
    EXPECT(host[at + 1] == 0 && (at == 0 || host[at - 1] == 0));
  }
  EXPECT(host[size - 1] == 77);
  MUST(cudaFree(device));
  return pass("huge_copies");
}
