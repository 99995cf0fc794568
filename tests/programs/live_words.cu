// Words that one side writes while the other waits, in host memory that both see: a stream that waits for a
// word which the host stores, a host that polls a word which a stream or a running kernel writes, a running
// kernel that polls a word which the host stores. Who sees a word sees what was written before it. In memory
// of three kinds: pinned, registered, and a large pinned block with the words at its end. "measure" prints
// how long an answer takes.
#include <cuda.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <string>
#include <thread>
#include <vector>

#include "common.hh"

namespace {

using namespace std::chrono_literals;
using watch = std::chrono::steady_clock;

constexpr int data_words = 1024;
const char* now = "the beginning";  ///< what is being tried

/// The words stand apart from the data, in lines of their own.
struct words {
  alignas(64) unsigned go;      // host to device
  alignas(64) unsigned done;    // device to host
  alignas(64) unsigned answer;  // device to host
};

struct shared_block {
  unsigned *data, *results;  // data_words each
  words* w;
  unsigned *data_there, *results_there;
  words* w_there;
};

template <class T>
void store(T* at, T value) {
  __atomic_store_n(at, value, __ATOMIC_RELEASE);
}

/// Without any call of CUDA.
double poll(const char* name, const unsigned* word, unsigned wanted) {
  now = name;
  const auto begin = watch::now();
  while (__atomic_load_n(word, __ATOMIC_ACQUIRE) != wanted) {
    if (watch::now() - begin > 20s) {
      std::printf("FAIL live_words: %s: the word is %u, not %u\n", name, *word, wanted);
      std::fflush(stdout);
      std::_Exit(1);
    }
    std::this_thread::yield();
  }
  return std::chrono::duration<double, std::micro>(watch::now() - begin).count();
}

void right(const char* name, bool condition) {
  if (condition) return;
  std::printf("FAIL live_words: %s: a word came before what it stands for\n", name);
  std::fflush(stdout);
  std::_Exit(1);
}

}  // namespace

__global__ void add_up(const volatile unsigned* data, int n, int stride, unsigned* sum) {
  unsigned s = 0;
  for (int i = 0; i < n; i++) s += data[i * stride];
  *sum = s;
}

__global__ void fill(volatile unsigned* data, int n, unsigned value) {
  for (int i = 0; i < n; i++) data[i] = value + i;
}

/// Answers questions while it runs; each is right only if all of its data is there.
__global__ void answerer(const volatile unsigned* data, volatile unsigned* results, volatile words* w,
                         int rounds) {
  for (unsigned round = 1; round <= rounds; round++) {
    while (w->go != round) {
    }
    unsigned s = 0;
    for (int i = 0; i < 64; i++) s += data[i * 16];
    for (int i = 0; i < 64; i++) results[i * 16] = s + i;
    __threadfence_system();
    w->answer = round;
    __threadfence_system();
  }
}

namespace {

CUdeviceptr at(const void* there) { return reinterpret_cast<CUdeviceptr>(there); }

/// A driver loads a kernel at its first launch, and waits for the device then: behind a wait for a word that
/// has no end.
void load_kernels(const shared_block& b) {
  unsigned* sum = nullptr;
  MUST(cudaMalloc(&sum, sizeof *sum));
  add_up<<<1, 1>>>(b.data_there, 0, 1, sum);
  fill<<<1, 1>>>(b.results_there, 0, 0);
  answerer<<<1, 1>>>(b.data_there, b.results_there, b.w_there, 0);
  MUST(cudaMemset(sum, 0, sizeof *sum));
  MUST(cudaFree(sum));
}

void prepare(const shared_block& b) {
  MUST(cudaDeviceSynchronize());
  std::memset(b.w, 0, sizeof *b.w);
  std::memset(b.data, 0, data_words * sizeof(unsigned));
  std::memset(b.results, 0, data_words * sizeof(unsigned));
}

/// A stream waits for a word of the host's, and writes one; nothing but that tells anybody.
double stream_waits(const shared_block& b, cudaStream_t s, unsigned value, bool other_thread) {
  prepare(b);
  unsigned *sum = nullptr, got = 0, expected = 0;
  MUST(cudaMalloc(&sum, sizeof *sum));
  MUST(cudaDeviceSynchronize());
  MUST(cuStreamWaitValue32(s, at(&b.w_there->go), value, CU_STREAM_WAIT_VALUE_EQ));
  add_up<<<1, 1, 0, s>>>(b.data_there, data_words, 1, sum);
  MUST(cuStreamWriteValue32(s, at(&b.w_there->done), value, CU_STREAM_WRITE_VALUE_DEFAULT));
  std::thread waits;
  if (other_thread) waits = std::thread([&] { MUST(cudaStreamSynchronize(s)); });
  std::this_thread::sleep_for(5ms);
  for (int i = 0; i < data_words; i++) expected += b.data[i] = value * 3 + i;
  store(&b.w->go, value);
  const double took = poll("a stream waits for a word", &b.w->done, value);
  if (other_thread) waits.join();
  MUST(cudaMemcpy(&got, sum, sizeof got, cudaMemcpyDeviceToHost));
  right("a stream waits for a word", got == expected);
  MUST(cudaFree(sum));
  return took;
}

/// A thread in a copy that the driver itself does not return from before the word is there.
void copy_waits(const shared_block& b) {
  prepare(b);
  cudaStream_t s = nullptr;
  unsigned *there = nullptr, here = 0;
  MUST(cudaStreamCreate(&s));  // the default stream waits for it
  MUST(cudaMalloc(&there, sizeof *there));
  MUST(cudaMemset(there, 0, sizeof *there));
  MUST(cudaDeviceSynchronize());
  MUST(cuStreamWaitValue32(s, at(&b.w_there->go), 9, CU_STREAM_WAIT_VALUE_EQ));
  MUST(cudaMemsetAsync(there, 1, sizeof *there, s));
  now = "a copy waits for a word";
  std::thread copies([&] { MUST(cudaMemcpy(&here, there, sizeof here, cudaMemcpyDeviceToHost)); });
  std::this_thread::sleep_for(20ms);
  store(&b.w->go, 9u);
  copies.join();
  right("a copy waits for a word", here == 0x01010101);
  MUST(cudaFree(there));
  MUST(cudaStreamDestroy(s));
}

/// The same, of an array: rows of bytes that the driver brings by itself.
void array_copy_waits(const shared_block& b) {
  prepare(b);
  cudaStream_t s = nullptr;
  cudaArray_t there = nullptr;
  const cudaChannelFormatDesc words = cudaCreateChannelDesc<unsigned>();
  unsigned before[2] = {1, 1}, here[2] = {};
  MUST(cudaStreamCreate(&s));
  MUST(cudaMallocArray(&there, &words, 2, 1));
  MUST(cudaMemcpy2DToArray(there, 0, 0, before, sizeof before, sizeof before, 1, cudaMemcpyHostToDevice));
  MUST(cuStreamWaitValue32(s, at(&b.w_there->go), 9, CU_STREAM_WAIT_VALUE_EQ));
  now = "a copy of an array waits for a word";
  std::thread copies([&] {
    MUST(cudaMemcpy2DFromArray(here, sizeof here, there, 0, 0, sizeof here, 1, cudaMemcpyDeviceToHost));
  });
  std::this_thread::sleep_for(20ms);
  store(&b.w->go, 9u);
  copies.join();
  right("a copy of an array waits for a word", here[1] == 1);
  MUST(cudaFreeArray(there));
  MUST(cudaStreamDestroy(s));
}

/// Copies of page-locked memory behind such a wait return at once.
void copies_behind(const shared_block& b, cudaStream_t s) {
  prepare(b);
  unsigned *pinned = nullptr, *there = nullptr;
  MUST(cudaMallocHost(&pinned, 2 * 4096));
  MUST(cudaMalloc(&there, 4096));
  std::memset(pinned, 5, 4096);
  std::memset(pinned + 1024, 0, 4096);
  MUST(cudaDeviceSynchronize());
  const auto begin = watch::now();
  MUST(cuStreamWaitValue32(s, at(&b.w_there->go), 1, CU_STREAM_WAIT_VALUE_GEQ));
  MUST(cudaMemcpyAsync(there, pinned, 4096, cudaMemcpyHostToDevice, s));
  MUST(cudaMemcpyAsync(pinned + 1024, there, 4096, cudaMemcpyDeviceToHost, s));
  MUST(cuStreamWriteValue32(s, at(&b.w_there->done), 1, CU_STREAM_WRITE_VALUE_DEFAULT));
  EXPECT(watch::now() - begin < 2s && b.w->done == 0);
  store(&b.w->go, 1u);
  poll("copies behind a wait", &b.w->done, 1);
  MUST(cudaStreamSynchronize(s));
  EXPECT(std::memcmp(pinned, pinned + 1024, 4096) == 0);
  MUST(cudaFree(there));
  MUST(cudaFreeHost(pinned));
}

/// The host polls a word that a stream writes, once by its value's own step and once by any other.
void stream_writes(const shared_block& b, cudaStream_t s) {
  for (const unsigned value : {1u, 4711u}) {
    prepare(b);
    fill<<<1, 1, 0, s>>>(b.results_there, data_words, value);
    MUST(cuStreamWriteValue32(s, at(&b.w_there->done), value, CU_STREAM_WRITE_VALUE_DEFAULT));
    poll("a stream writes a word", &b.w->done, value);
    for (int i = 0; i < data_words; i++) right("a stream writes a word", b.results[i] == value + i);
  }
}

/// What a word stands for is more than one message holds, both ways.
void much_behind_a_word(char* host, char* device, std::size_t size) {
  constexpr int page = 4096;
  const std::size_t half = size / 2 - page;
  auto *data = reinterpret_cast<unsigned*>(host), *results = data + half / sizeof *data;
  auto* w = reinterpret_cast<words*>(host + 2 * half);
  auto* w_there = reinterpret_cast<words*>(device + 2 * half);
  const int pages = static_cast<int>(half / page), stride = page / sizeof *data;
  cudaStream_t s = nullptr;
  unsigned *sum = nullptr, got = 0, expected = 0;
  MUST(cudaStreamCreateWithFlags(&s, cudaStreamNonBlocking));
  MUST(cudaMalloc(&sum, sizeof *sum));
  std::memset(w, 0, sizeof *w);
  MUST(cudaDeviceSynchronize());
  MUST(cuStreamWaitValue32(s, at(&w_there->go), 1, CU_STREAM_WAIT_VALUE_GEQ));
  add_up<<<1, 1, 0, s>>>(reinterpret_cast<unsigned*>(device), pages, stride, sum);
  MUST(cuMemsetD32Async(at(device + half), 4711, half / sizeof *data, s));
  MUST(cuStreamWriteValue32(s, at(&w_there->done), 1, CU_STREAM_WRITE_VALUE_DEFAULT));
  for (std::size_t i = 0; i < half / sizeof *data; i++) data[i] = static_cast<unsigned>(i) * 2654435761u;
  for (int i = 0; i < pages; i++) expected += data[i * stride];
  store(&w->go, 1u);
  poll("much behind a word", &w->done, 1);
  for (std::size_t i = half / sizeof *data; i-- > 0;)
    right("much behind a word, to the host", results[i] == 4711);
  MUST(cudaMemcpy(&got, sum, sizeof got, cudaMemcpyDeviceToHost));
  right("much behind a word, to the device", got == expected);
  MUST(cudaFree(sum));
  MUST(cudaStreamDestroy(s));
}

/// Questions and answers with a running kernel.
std::vector<double> talk(const shared_block& b, cudaStream_t s, int rounds) {
  prepare(b);
  answerer<<<1, 1, 0, s>>>(b.data_there, b.results_there, b.w_there, rounds);
  std::vector<double> took;
  for (unsigned round = 1; round <= static_cast<unsigned>(rounds); round++) {
    unsigned expected = 0;
    for (int i = 0; i < 64; i++) expected += b.data[i * 16] = round * 1000 + i * 77;
    store(&b.w->go, round);
    took.push_back(poll("a kernel answers", &b.w->answer, round));
    for (unsigned i = 0; i < 64; i++) right("a kernel answers", b.results[i * 16] == expected + i);
  }
  MUST(cudaStreamSynchronize(s));
  std::sort(took.begin(), took.end());
  return took;
}

void all_of(const char* kind, const shared_block& b, bool measure) {
  cudaStream_t s = nullptr;
  MUST(cudaStreamCreateWithFlags(&s, cudaStreamNonBlocking));
  load_kernels(b);
  if (measure) {
    std::vector<double> waits;
    for (unsigned i = 1; i <= 50; i++) waits.push_back(stream_waits(b, s, i, false));
    std::sort(waits.begin(), waits.end());
    const auto talks = talk(b, s, 300);
    std::printf(
        "%s: a stream's word %.0f us (largest %.0f), there and back with a kernel %.0f us (largest %.0f)\n",
        kind, waits[waits.size() / 2], waits.back(), talks[talks.size() / 2], talks.back());
  } else {
    for (const unsigned value : {1u, 2u, 123456u}) stream_waits(b, s, value, false);
    stream_waits(b, s, 7, true);
    copy_waits(b);
    array_copy_waits(b);
    copies_behind(b, s);
    stream_writes(b, s);
    talk(b, s, 100);
  }
  MUST(cudaStreamDestroy(s));
}

shared_block split(char* host, char* device, std::size_t size) {
  const std::size_t data = data_words * sizeof(unsigned), tail = size - sizeof(words);
  const auto there = [&](std::size_t offset) { return device + offset; };
  return {reinterpret_cast<unsigned*>(host),        reinterpret_cast<unsigned*>(host + data),
          reinterpret_cast<words*>(host + tail),    reinterpret_cast<unsigned*>(there(0)),
          reinterpret_cast<unsigned*>(there(data)), reinterpret_cast<words*>(there(tail))};
}

void pinned(const char* kind, std::size_t size, bool measure) {
  char *host = nullptr, *device = nullptr;
  MUST(cudaHostAlloc(&host, size, cudaHostAllocMapped));
  MUST(cudaHostGetDevicePointer(&device, host, 0));
  all_of(kind, split(host, device, size), measure);
  if (size > 16 << 20 && !measure) much_behind_a_word(host, device, size);
  MUST(cudaFreeHost(host));
}

void registered(bool measure) {
  constexpr std::size_t size = 64 << 10;
  char *host = static_cast<char*>(std::aligned_alloc(4096, size)), *device = nullptr;
  std::memset(host, 0, size);
  MUST(cudaHostRegister(host, size, cudaHostRegisterMapped));
  MUST(cudaHostGetDevicePointer(&device, host, 0));
  all_of("registered", split(host, device, size), measure);
  MUST(cudaHostUnregister(host));
  std::free(host);
}

}  // namespace

int main(int argc, char** argv) {
  bool measure = false;
  std::string only;
  for (int i = 1; i < argc; i++)
    (std::strcmp(argv[i], "measure") == 0 ? void(measure = true) : void(only = argv[i]));
  int can = 0;
  MUST(cudaFree(nullptr));
  std::thread([] {
    std::this_thread::sleep_for(60s);
    std::printf("FAIL live_words: no end after 60 s: %s\n", now);
    std::fflush(stdout);
    std::_Exit(1);
  }).detach();
  MUST(cuDeviceGetAttribute(&can, CU_DEVICE_ATTRIBUTE_CAN_USE_64_BIT_STREAM_MEM_OPS, 0));
  EXPECT(can == 1);
  if (only.empty() || only == "pinned") pinned("pinned", 64 << 10, measure);
  if (only.empty() || only == "registered") registered(measure);
  if (only.empty() || only == "large") pinned("large", (measure ? 4 : 24) << 20, measure);
  return pass("live_words");
}
