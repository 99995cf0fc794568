// Streams, events and pinned memory: chunks are copied to the device, processed and copied back in four
// streams at once; one stream waits for another's event; every way to learn that work is complete is used.
#include "common.hh"

constexpr int streams = 4, rounds = 8, chunk = 1 << 14;

__global__ void scale(int* data, int n, int by) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) data[i] = data[i] * by + i;
}

__global__ void gather(const int* all, int* sums, int parts, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= n) return;
  int sum = 0;
  for (int part = 0; part < parts; part++) sum += all[part * n + i];
  sums[i] = sum;
}

int main() {
  const size_t bytes = chunk * sizeof(int);
  int *pinned, *device, *sums, *pinned_sums;
  MUST(cudaMallocHost(&pinned, streams * bytes));
  MUST(cudaHostAlloc(&pinned_sums, bytes, cudaHostAllocDefault));
  MUST(cudaMalloc(&device, streams * bytes));
  MUST(cudaMalloc(&sums, bytes));
  cudaStream_t stream[streams], last;
  cudaEvent_t done[streams], begin, end;
  for (auto& s : stream) MUST(cudaStreamCreateWithFlags(&s, cudaStreamNonBlocking));
  for (auto& e : done) MUST(cudaEventCreateWithFlags(&e, cudaEventDisableTiming));
  MUST(cudaStreamCreate(&last));
  MUST(cudaEventCreate(&begin));
  MUST(cudaEventCreate(&end));

  for (int round = 0; round < rounds; round++) {
    for (int i = 0; i < streams * chunk; i++) pinned[i] = i % 1000 + round;
    MUST(cudaEventRecord(begin, last));
    for (int s = 0; s < streams; s++) {
      int *host = pinned + s * chunk, *part = device + s * chunk;
      MUST(cudaMemcpyAsync(part, host, bytes, cudaMemcpyHostToDevice, stream[s]));
      scale<<<chunk / 256, 256, 0, stream[s]>>>(part, chunk, s + 2);
      MUST(cudaMemcpyAsync(host, part, bytes, cudaMemcpyDeviceToHost, stream[s]));
      MUST(cudaEventRecord(done[s], stream[s]));
      MUST(cudaStreamWaitEvent(last, done[s], 0));
    }
    gather<<<chunk / 256, 256, 0, last>>>(device, sums, streams, chunk);
    MUST(cudaMemcpyAsync(pinned_sums, sums, bytes, cudaMemcpyDeviceToHost, last));
    MUST(cudaEventRecord(end, last));
    // Each round uses another way to learn it.
    cudaError_t state = cudaErrorNotReady;
    switch (round % 4) {
      case 0:
        MUST(cudaEventSynchronize(end));
        break;
      case 1:
        MUST(cudaStreamSynchronize(last));
        break;
      case 2:
        MUST(cudaDeviceSynchronize());
        break;
      case 3:
        while ((state = cudaEventQuery(end)) == cudaErrorNotReady) {
        }
        MUST(state);
        break;
    }
    for (int i = 0; i < chunk; i++) {
      int sum = 0;
      for (int s = 0; s < streams; s++) {
        int right = ((s * chunk + i) % 1000 + round) * (s + 2) + i;
        EXPECT(pinned[s * chunk + i] == right);
        sum += right;
      }
      EXPECT(pinned_sums[i] == sum);
    }
    float milliseconds = -1;
    MUST(cudaEventElapsedTime(&milliseconds, begin, end));
    EXPECT(milliseconds >= 0);
  }
  for (auto& s : stream) MUST(cudaStreamDestroy(s));
  for (auto& e : done) MUST(cudaEventDestroy(e));
  MUST(cudaStreamDestroy(last));
  MUST(cudaEventDestroy(begin));
  MUST(cudaEventDestroy(end));
  MUST(cudaFreeHost(pinned));
  MUST(cudaFreeHost(pinned_sums));
  MUST(cudaFree(device));
  MUST(cudaFree(sums));
  return pass("streams");
}
