// Training-like steps with everything whose loss or doubling shows: counters that kernels and graphs count
// up, host functions, waits, small and large copies, all compared with what the host computes. For lines that
// break meanwhile; it knows nothing of that. usage: interrupted [STEPS] [MIB of the large copies].
#include <atomic>
#include <chrono>
#include <cstring>
#include <vector>

#include "common.hh"

constexpr int width = 4096;

__global__ void train(unsigned* weights, unsigned step) {
  const unsigned at = blockIdx.x * blockDim.x + threadIdx.x;
  if (at < width) weights[at] = weights[at] * 1664525u + step;
}

__global__ void count(unsigned* counter) { atomicAdd(counter, 1u); }

__global__ void mix(unsigned* data, size_t size, unsigned key) {
  for (size_t i = blockIdx.x * blockDim.x + threadIdx.x; i < size; i += gridDim.x * blockDim.x)
    data[i] ^= key;
}

void called(void* counter) { ++*static_cast<std::atomic<unsigned>*>(counter); }

/** Copies a large block to the device, changes it there, and copies it back. */
void large_copies(unsigned* there, std::vector<unsigned>& out, std::vector<unsigned>& back, unsigned step) {
  for (size_t i = 0; i < out.size(); i++) out[i] = unsigned(i) * 2654435761u + step;
  MUST(cudaMemcpy(there, out.data(), out.size() * sizeof(unsigned), cudaMemcpyHostToDevice));
  mix<<<64, 128>>>(there, out.size(), step);
  std::memset(back.data(), 0xee, back.size() * sizeof(unsigned));
  MUST(cudaMemcpy(back.data(), there, back.size() * sizeof(unsigned), cudaMemcpyDeviceToHost));
  size_t wrong = 0;
  for (size_t i = 0; i < out.size(); i++) wrong += back[i] != (out[i] ^ step);
  EXPECT(wrong == 0);
}

int main(int count_of_arguments, char** values) {
  const unsigned steps = argument(count_of_arguments, values, 1, 200);
  const size_t mib = argument(count_of_arguments, values, 2, 4);
  std::vector<unsigned> model(width), weights(width), out(mib << 18), back(mib << 18);
  for (unsigned i = 0; i < width; i++) model[i] = i;
  unsigned *on_device, *counters, *block, *pinned;
  MUST(cudaMalloc(&on_device, width * sizeof(unsigned)));
  MUST(cudaMalloc(&counters, 2 * sizeof(unsigned)));
  MUST(cudaMalloc(&block, mib << 20));
  MUST(cudaMallocHost(&pinned, width * sizeof(unsigned)));
  MUST(cudaMemset(counters, 0, 2 * sizeof(unsigned)));
  MUST(cudaMemcpy(on_device, model.data(), width * sizeof(unsigned), cudaMemcpyHostToDevice));
  cudaStream_t stream;
  cudaEvent_t done;
  MUST(cudaStreamCreate(&stream));
  MUST(cudaEventCreateWithFlags(&done, cudaEventDisableTiming));
  cudaGraph_t graph;
  cudaGraphExec_t replay;
  MUST(cudaStreamBeginCapture(stream, cudaStreamCaptureModeGlobal));
  for (int i = 0; i < 3; i++) count<<<1, 1, 0, stream>>>(counters + 1);
  MUST(cudaStreamEndCapture(stream, &graph));
  MUST(cudaGraphInstantiate(&replay, graph, 0));
  std::atomic<unsigned> calls{0};
  unsigned expected_calls = 0;
  for (unsigned step = 1; step <= steps; step++) {
    train<<<width / 128, 128, 0, stream>>>(on_device, step);
    count<<<1, 1, 0, stream>>>(counters);
    MUST(cudaGraphLaunch(replay, stream));
    for (unsigned& w : model) w = w * 1664525u + step;
    if (step % 8 == 0) {
      MUST(cudaLaunchHostFunc(stream, called, &calls));
      expected_calls++;
    }
    if (step % 4 == 0) {
      MUST(cudaMemcpyAsync(pinned, on_device, width * sizeof(unsigned), cudaMemcpyDeviceToHost, stream));
      MUST(cudaEventRecord(done, stream));
      MUST(cudaEventSynchronize(done));
      EXPECT(std::memcmp(pinned, model.data(), width * sizeof(unsigned)) == 0);
      EXPECT(calls == expected_calls);
    }
    if (step % 16 == 0) {
      unsigned counted[2];
      MUST(cudaStreamSynchronize(stream));
      MUST(cudaMemcpy(counted, counters, sizeof counted, cudaMemcpyDeviceToHost));
      EXPECT(counted[0] == step && counted[1] == 3 * step);
    }
    if (mib && step % 32 == 0) large_copies(block, out, back, step);
  }
  MUST(cudaStreamSynchronize(stream));
  MUST(cudaMemcpy(weights.data(), on_device, width * sizeof(unsigned), cudaMemcpyDeviceToHost));
  EXPECT(weights == model);
  unsigned sum = 0;
  for (unsigned w : weights) sum = sum * 31 + w;
  std::printf("%u steps, %u host functions, checksum %u\n", steps, calls.load(), sum);
  MUST(cudaGraphExecDestroy(replay));
  MUST(cudaGraphDestroy(graph));
  MUST(cudaFree(on_device));
  return pass("interrupted");
}
