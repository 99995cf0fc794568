// Two sorting networks, the classic workload of GPU remoting papers: bitonic (steps inside a block go through
// shared memory) and Batcher's odd-even merge. Sorts keys with a payload; checks order and permutation
// against std::sort.
#include <algorithm>
#include <numeric>

#include "common.hh"

constexpr int block = 256;

__device__ void compare_exchange(std::uint32_t* key, std::uint32_t* payload, int low, int high,
                                 bool ascending) {
  if ((key[low] > key[high]) != ascending) return;
  std::uint32_t held = key[low];
  key[low] = key[high], key[high] = held;
  held = payload[low];
  payload[low] = payload[high], payload[high] = held;
}

__global__ void bitonic_step(std::uint32_t* key, std::uint32_t* payload, int pairs, int stride, int size) {
  int pair = blockIdx.x * blockDim.x + threadIdx.x;
  if (pair >= pairs) return;
  int low = 2 * pair - (pair & (stride - 1));
  compare_exchange(key, payload, low, low + stride, (low & size) == 0);
}

/// All strides up to block of one size; a block holds 2 * block elements.
__global__ void bitonic_tail(std::uint32_t* key, std::uint32_t* payload, int size) {
  __shared__ std::uint32_t keys[2 * block], payloads[2 * block];
  const int first = blockIdx.x * 2 * block, own = threadIdx.x;
  for (int i = own; i < 2 * block; i += block) keys[i] = key[first + i], payloads[i] = payload[first + i];
  for (int stride = min(size / 2, block); stride > 0; stride /= 2) {
    __syncthreads();
    int low = 2 * own - (own & (stride - 1));
    compare_exchange(keys, payloads, low, low + stride, ((first + low) & size) == 0);
  }
  __syncthreads();
  for (int i = own; i < 2 * block; i += block) key[first + i] = keys[i], payload[first + i] = payloads[i];
}

__global__ void odd_even_step(std::uint32_t* key, std::uint32_t* payload, int n, int p, int k) {
  int low = blockIdx.x * blockDim.x + threadIdx.x, offset = k % p;
  if (low < offset || low + k >= n || (low - offset) % (2 * k) >= k) return;
  if (low / (2 * p) == (low + k) / (2 * p)) compare_exchange(key, payload, low, low + k, true);
}

void bitonic(std::uint32_t* key, std::uint32_t* payload, int n) {
  for (int size = 2; size <= n; size *= 2) {
    for (int stride = size / 2; stride > 0; stride /= 2) {
      if (stride <= block && n >= 2 * block) {
        bitonic_tail<<<n / (2 * block), block>>>(key, payload, size);
        break;
      }
      bitonic_step<<<(n / 2 + block - 1) / block, block>>>(key, payload, n / 2, stride, size);
    }
  }
}

void odd_even_merge(std::uint32_t* key, std::uint32_t* payload, int n) {
  for (int p = 1; p < n; p *= 2)
    for (int k = p; k > 0; k /= 2) odd_even_step<<<(n + block - 1) / block, block>>>(key, payload, n, p, k);
}

void check(void (*network)(std::uint32_t*, std::uint32_t*, int), const char* name, int n,
           std::uint32_t mask) {
  std::vector<std::uint32_t> keys(n), places(n), sorted(n), moved(n);
  numbers random;
  for (auto& key : keys) key = random.next() & mask;  // a narrow mask makes many equal keys
  std::iota(places.begin(), places.end(), 0);
  const size_t bytes = n * sizeof(std::uint32_t);
  std::uint32_t *key, *payload;
  MUST(cudaMalloc(&key, bytes));
  MUST(cudaMalloc(&payload, bytes));
  MUST(cudaMemcpy(key, keys.data(), bytes, cudaMemcpyHostToDevice));
  MUST(cudaMemcpy(payload, places.data(), bytes, cudaMemcpyHostToDevice));
  network(key, payload, n);
  MUST(cudaGetLastError());
  MUST(cudaMemcpy(sorted.data(), key, bytes, cudaMemcpyDeviceToHost));
  MUST(cudaMemcpy(moved.data(), payload, bytes, cudaMemcpyDeviceToHost));
  MUST(cudaFree(key));
  MUST(cudaFree(payload));
  for (int i = 0; i < n; i++) EXPECT(moved[i] < unsigned(n) && sorted[i] == keys[moved[i]]);
  std::sort(moved.begin(), moved.end());
  EXPECT(moved == places);
  std::sort(keys.begin(), keys.end());
  EXPECT(sorted == keys);
  std::printf("%s sorted %d keys\n", name, n);
}

int main() {
  for (int n : {2, 64, 512, 1024, 16384}) {
    check(bitonic, "bitonic", n, 0xffffffff);
    check(odd_even_merge, "odd-even merge", n, 0xffffffff);
    check(bitonic, "bitonic", n, 0x1f);
    check(odd_even_merge, "odd-even merge", n, 0x1f);
  }
  return pass("sort_networks");
}
