// An upload and a download of 64 MB in two threads at once: neither may wait for the other's bytes to be
// read. usage: two_way [MEGABYTES] [ROUNDS]
#include <cstring>
#include <thread>

#include "common.hh"

int main(int count, char** values) {
  const size_t bytes = argument(count, values, 1, 64) << 20;
  const int rounds = argument(count, values, 2, 3);
  std::vector<std::uint32_t> up(bytes / 4), down(bytes / 4), back(bytes / 4);
  numbers random;
  for (auto& x : up) x = random.next();
  char *target, *source;
  MUST(cudaMalloc(&target, bytes));
  MUST(cudaMalloc(&source, bytes));
  MUST(cudaMemset(source, 0x5a, bytes));
  MUST(cudaDeviceSynchronize());
  auto in_stream = [&](auto copy) {
    cudaStream_t stream;
    MUST(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
    for (int i = 0; i < rounds; i++) {
      copy(stream);
      MUST(cudaStreamSynchronize(stream));
    }
    MUST(cudaStreamDestroy(stream));
  };
  std::thread uploader(in_stream, [&](cudaStream_t stream) {
    MUST(cudaMemcpyAsync(target, up.data(), bytes, cudaMemcpyHostToDevice, stream));
  });
  std::thread downloader(in_stream, [&](cudaStream_t stream) {
    MUST(cudaMemcpyAsync(down.data(), source, bytes, cudaMemcpyDeviceToHost, stream));
  });
  uploader.join();
  downloader.join();
  for (auto x : down) EXPECT(x == 0x5a5a5a5a);
  MUST(cudaMemcpy(back.data(), target, bytes, cudaMemcpyDeviceToHost));
  EXPECT(std::memcmp(up.data(), back.data(), bytes) == 0);
  MUST(cudaFree(target));
  MUST(cudaFree(source));
  return pass("two_way");
}
