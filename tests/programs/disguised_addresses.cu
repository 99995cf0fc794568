// The address of page-locked memory reaches a kernel in forms that nobody can tell from other numbers: as two
// halves, as a distance from device memory, shifted, inverted. Passes over every transport with
// OUTBOARD_FIND_ADDRESSES=0 (docs/memory.md, "Addresses in disguise").
#include <cstdint>

#include "common.hh"

constexpr int words = 1000;

__device__ void double_all(std::uint64_t at) {
  unsigned* p = reinterpret_cast<unsigned*>(at);
  for (int i = 0; i < words; i++) p[i] *= 2;
}

__global__ void by_halves(std::uint32_t high, float between, std::uint32_t low) {
  if (between > 0) double_all(std::uint64_t{high} << 32 | low);
}
__global__ void by_distance(char* from, long long by) {
  double_all(reinterpret_cast<std::uint64_t>(from + by));
}
__global__ void shifted(std::uint64_t v) { double_all(v << 4); }
__global__ void inverted(std::uint64_t v) { double_all(~v); }

namespace {

/// Nothing but the kernels' parameters could tell anybody of the memory: no device pointer is asked for.
void in_all_forms(unsigned* host, char* device) {
  unsigned round = 1;
  const auto there = reinterpret_cast<std::uint64_t>(host);
  const auto launch = [&](auto start) {
    for (int i = 0; i < words; i++) host[i] = round * 1000 + i;
    start();
    MUST(cudaGetLastError());
    MUST(cudaDeviceSynchronize());
    for (int i = 0; i < words; i++) EXPECT(host[i] == 2 * (round * 1000 + i));
    round++;
  };
  launch([&] {
    by_halves<<<1, 1>>>(static_cast<std::uint32_t>(there >> 32), 1, static_cast<std::uint32_t>(there));
  });
  launch([&] { by_distance<<<1, 1>>>(device, reinterpret_cast<char*>(host) - device); });
  launch([&] { shifted<<<1, 1>>>(there >> 4); });
  launch([&] { inverted<<<1, 1>>>(~there); });
}

}  // namespace

int main() {
  char* device = nullptr;
  unsigned* pinned = nullptr;
  MUST(cudaMalloc(&device, 64));
  MUST(cudaMallocHost(&pinned, words * sizeof *pinned));
  in_all_forms(pinned, device);
  MUST(cudaFreeHost(pinned));
  MUST(cudaFree(device));
  return pass("disguised_addresses");
}
