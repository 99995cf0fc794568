// A page of a shared file is one memory for all GPUs that reach it: two processes register it, as NCCL's do
// with /dev/shm, or one process maps it at two addresses and registers both. Whose kernel sees a word of the
// other's sees what was written before it.
#include <cuda.h>
#include <sys/mman.h>

#include "processes.hh"

namespace {

constexpr std::size_t size = 64 << 10;
constexpr int count = 1024, rounds = 8;

struct area {
  unsigned data[count];
  alignas(4096) unsigned answers[count];
  alignas(4096) unsigned ask;   // the asking side's word: data is there
  alignas(64) unsigned answer;  // the answering side's: answers are there
};

int make_file() {
  const int fd = ::memfd_create("shared_pages", 0);
  EXPECT(fd >= 0 && ::ftruncate(fd, size) == 0);
  return fd;
}

struct mapping {
  area* host = nullptr;
  area* there = nullptr;
};

mapping register_pages(int fd) {
  mapping m;
  void* at = ::mmap(nullptr, size, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
  EXPECT(at != MAP_FAILED);
  MUST(cudaHostRegister(at, size, cudaHostRegisterMapped | cudaHostRegisterPortable));
  m.host = static_cast<area*>(at);
  MUST(cudaHostGetDevicePointer(reinterpret_cast<void**>(&m.there), at, 0));
  return m;
}

void forget(const mapping& m) {
  MUST(cudaHostUnregister(m.host));
  EXPECT(::munmap(m.host, size) == 0);
}

}  // namespace

/// Asks and waits for the answer, all of it in one kernel.
__global__ void asks(volatile area* a, int rounds, unsigned* wrong) {
  for (unsigned round = 1; round <= rounds; round++) {
    for (int i = 0; i < count; i++) a->data[i] = round * 2654435761u + i * 40503u;
    __threadfence_system();
    a->ask = round;
    while (a->answer != round) {
    }
    __threadfence_system();
    for (int i = 0; i < count; i++)
      if (a->answers[i] != round * 2654435761u + i * 40503u + 1) *wrong = round;
  }
}

__global__ void answers(volatile area* a, int rounds) {
  for (unsigned round = 1; round <= rounds; round++) {
    while (a->ask != round) {
    }
    __threadfence_system();
    for (int i = 0; i < count; i++) a->answers[i] = a->data[i] + 1;
    __threadfence_system();
    a->answer = round;
  }
}

namespace {

/// A driver loads a kernel at its first launch and waits for the device: before any of them runs for long.
unsigned* prepare(const mapping& m) {
  unsigned* wrong = nullptr;
  MUST(cudaMalloc(&wrong, sizeof *wrong));
  MUST(cudaMemset(wrong, 0, sizeof *wrong));
  asks<<<1, 1>>>(m.there, 0, wrong);
  answers<<<1, 1>>>(m.there, 0);
  MUST(cudaDeviceSynchronize());
  return wrong;
}

void right(unsigned* wrong) {
  unsigned got = 0;
  MUST(cudaMemcpy(&got, wrong, sizeof got, cudaMemcpyDeviceToHost));
  if (got != 0) std::printf("FAIL in round %u a word came before its data\n", got);
  EXPECT(got == 0);
  MUST(cudaFree(wrong));
}

void asking_process(channel& to) {
  const int fd = make_file();
  to.put_descriptor(fd);
  const mapping m = register_pages(fd);
  unsigned* wrong = prepare(m);
  to.hear();  // the other has registered it, too
  asks<<<1, 1>>>(m.there, rounds, wrong);
  MUST(cudaDeviceSynchronize());
  right(wrong);
  EXPECT(m.host->ask == rounds && m.host->answer == rounds);
  forget(m);
  to.tell();
}

void answering_process(channel& to) {
  const int fd = to.take_descriptor();
  const mapping m = register_pages(fd);
  unsigned* wrong = prepare(m);
  to.tell();
  answers<<<1, 1>>>(m.there, rounds);
  MUST(cudaDeviceSynchronize());
  to.hear();
  right(wrong);
  forget(m);
}

/// Streams of one process, by two addresses; the host looks on by both.
void two_addresses(channel& to) {
  const int fd = make_file();
  const mapping one = register_pages(fd), two = register_pages(fd);
  EXPECT(one.host != two.host && one.there != two.there);
  unsigned* wrong = prepare(one);
  cudaStream_t first, second;
  MUST(cudaStreamCreateWithFlags(&first, cudaStreamNonBlocking));
  MUST(cudaStreamCreateWithFlags(&second, cudaStreamNonBlocking));
  // The second stream's kernel runs once the first one's word is there.
  const auto word = reinterpret_cast<CUdeviceptr>(&two.there->ask);
  MUST(cuStreamWaitValue32(second, word, 1, CU_STREAM_WAIT_VALUE_EQ));
  answers<<<1, 1, 0, second>>>(two.there, 1);
  asks<<<1, 1, 0, first>>>(one.there, 1, wrong);
  while (__atomic_load_n(&one.host->answer, __ATOMIC_ACQUIRE) != 1) {
  }
  EXPECT(two.host->answers[count - 1] == two.host->data[count - 1] + 1);
  MUST(cudaStreamSynchronize(first));
  MUST(cudaStreamSynchronize(second));
  right(wrong);
  forget(one);
  forget(two);
  to.tell();
}

void looks_on(channel& to) { to.hear(); }

}  // namespace

int main(int argc, char** values) {
  ::alarm(40);  // a word that never comes
  return play(
      "shared_pages",
      {{"two processes", asking_process, answering_process}, {"two addresses", two_addresses, looks_on}},
      argc, values);
}
