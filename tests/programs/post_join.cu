// Happens-before through a join: a thread posts thousands of launches and copies and ends without waiting for
// them; the thread that joins it sees every one, by each way of asking.
#include <thread>

#include "common.hh"

constexpr int launches = 4000;

__global__ void mark(int* counter, int* slots, int i) {
  *counter += 1;
  slots[i] = i + 1;
}

void round(cudaStream_t stream, bool by_stream_wait) {
  int *counter, *slots, *copies;
  MUST(cudaMalloc(&counter, sizeof(int)));
  MUST(cudaMalloc(&slots, launches * sizeof(int)));
  MUST(cudaMalloc(&copies, launches * sizeof(int)));
  MUST(cudaMemset(counter, 0, sizeof(int)));
  MUST(cudaMemset(slots, 0, launches * sizeof(int)));
  MUST(cudaMemset(copies, 0, launches * sizeof(int)));
  MUST(cudaDeviceSynchronize());
  std::thread poster([&] {
    for (int i = 0; i < launches; i++) {
      mark<<<1, 1, 0, stream>>>(counter, slots, i);
      MUST(cudaMemcpyAsync(copies + i, slots + i, sizeof(int), cudaMemcpyDeviceToDevice, stream));
    }
    MUST(cudaGetLastError());
  });
  poster.join();
  if (by_stream_wait) MUST(cudaStreamSynchronize(stream));
  int count;
  std::vector<int> marked(launches), copied(launches);
  MUST(cudaMemcpy(&count, counter, sizeof count, cudaMemcpyDeviceToHost));
  MUST(cudaMemcpy(marked.data(), slots, launches * sizeof(int), cudaMemcpyDeviceToHost));
  MUST(cudaMemcpy(copied.data(), copies, launches * sizeof(int), cudaMemcpyDeviceToHost));
  EXPECT(count == launches);
  for (int i = 0; i < launches; i++) EXPECT(marked[i] == i + 1 && copied[i] == i + 1);
  MUST(cudaFree(counter));
  MUST(cudaFree(slots));
  MUST(cudaFree(copies));
}

int main() {
  cudaStream_t stream, loose;
  MUST(cudaStreamCreate(&stream));
  MUST(cudaStreamCreateWithFlags(&loose, cudaStreamNonBlocking));
  round(nullptr, false);  // legacy stream; the copy itself waits
  round(stream, false);   // the legacy stream's copy waits for an ordinary stream
  round(loose, true);     // only the wait for the stream itself does
  MUST(cudaStreamDestroy(stream));
  MUST(cudaStreamDestroy(loose));
  return pass("post_join");
}
