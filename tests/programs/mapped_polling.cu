// Host and kernel talk to each other through mapped memory while the kernel runs: it waits for numbers that
// the host writes and answers each.
#include <chrono>

#include "common.hh"

struct mailbox {
  volatile int question, answer;
};

__global__ void answerer(mailbox* box, int rounds, long long patience) {
  const long long begin = clock64();
  for (int round = 1; round <= rounds; round++) {
    while (box->question != round) {
      if (clock64() - begin > patience) return;
    }
    box->answer = round * round;
    __threadfence_system();
  }
}

int main() {
  constexpr int rounds = 200;
  mailbox *box, *there;
  MUST(cudaHostAlloc(&box, sizeof *box, cudaHostAllocMapped));
  MUST(cudaHostGetDevicePointer(&there, box, 0));
  box->question = box->answer = 0;
  answerer<<<1, 1>>>(there, rounds, 60'000'000'000ll);
  const auto give_up = std::chrono::steady_clock::now() + std::chrono::seconds(30);
  for (int round = 1; round <= rounds; round++) {
    box->question = round;
    while (box->answer != round * round) EXPECT(std::chrono::steady_clock::now() < give_up);
    EXPECT(round == rounds || cudaStreamQuery(nullptr) == cudaErrorNotReady);
  }
  MUST(cudaDeviceSynchronize());
  MUST(cudaFreeHost(box));
  return pass("mapped_polling");
}
