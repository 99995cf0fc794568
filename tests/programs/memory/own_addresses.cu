// A program that has memory of its own at addresses far apart before it uses CUDA, as programs with
// sanitizers or managed run times and databases have: the device's memory is elsewhere, the program's bytes
// do not change, and each kind of pointer is recognised.
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstring>

#include "../common.hh"

__global__ void add(int* to, const int* from, int n) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) to[i] += from[i];
}

namespace {

constexpr int n = 5000;
constexpr std::size_t bytes = 1 << 20;
constexpr std::uint64_t places[] = {0x2000'0000'0000, 0x3000'0000'0000, 0x6000'0000'0000, 0x7e00'0000'0000,
                                    0x40'0000'0000};

int* own_memory(std::uint64_t at) {
  void* got = mmap(reinterpret_cast<void*>(at), bytes, PROT_READ | PROT_WRITE,
                   MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0);
  if (got != reinterpret_cast<void*>(at)) return nullptr;  // the system uses these addresses
  std::memset(got, 0x31, bytes);
  return static_cast<int*>(got);
}

bool apart(const void* a, const int* own) {
  const auto x = reinterpret_cast<std::uintptr_t>(a), o = reinterpret_cast<std::uintptr_t>(own);
  return x + bytes <= o || o + bytes <= x;
}

int work(std::size_t taken) {
  std::vector<int*> own;
  for (std::size_t i = 0; i < taken; ++i) {
    if (int* got = own_memory(places[i])) own.push_back(got);
  }
  int *device = nullptr, *pinned = nullptr, *managed = nullptr;
  MUST(cudaMalloc(&device, bytes));
  MUST(cudaMallocHost(&pinned, bytes));
  MUST(cudaMallocManaged(&managed, bytes));
  std::vector<int> seen(n);
  for (int* mine : own) {
    for (void* theirs : {device, pinned, managed}) EXPECT(apart(theirs, mine));
    cudaPointerAttributes about;
    MUST(cudaPointerGetAttributes(&about, mine));
    EXPECT(about.type == cudaMemoryTypeUnregistered);
    for (int i = 0; i < n; ++i) mine[i] = pinned[i] = managed[i] = i;
    MUST(cudaMemcpy(device, mine, n * sizeof(int), cudaMemcpyDefault));
    add<<<(n + 255) / 256, 256>>>(device, managed, n);
    add<<<(n + 255) / 256, 256>>>(device, pinned, n);
    MUST(cudaMemcpy(mine + n, device, n * sizeof(int), cudaMemcpyDefault));
    for (int i = 0; i < n; ++i) EXPECT(mine[n + i] == 3 * i);
    EXPECT(mine[2 * n] == 0x31313131);
  }
  MUST(cudaMemset(device, 0, bytes));
  MUST(cudaMemcpy(seen.data(), device, n * sizeof(int), cudaMemcpyDeviceToHost));
  for (int value : seen) EXPECT(value == 0);
  MUST(cudaFree(device));
  MUST(cudaFreeHost(pinned));
  MUST(cudaFree(managed));
  return 0;
}

}  // namespace

int main() {
  // Each child has one more place in use; only the children use CUDA.
  for (std::size_t taken = 0; taken <= std::size(places); ++taken) {
    std::fflush(stdout);
    const pid_t child = fork();
    if (child == 0) exit(work(taken));
    int status = 0;
    EXPECT(child > 0 && waitpid(child, &status, 0) == child);
    EXPECT(WIFEXITED(status) && WEXITSTATUS(status) == 0);
  }
  return pass("own_addresses");
}
