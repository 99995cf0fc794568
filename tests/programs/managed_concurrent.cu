// Host and kernels use managed memory at the same time, where the device says that they can: atomics of both
// sides add up; each polls what the other writes while the kernel runs; they write beside each other in one
// block; blocks that no running kernel names are free; variables of the module, structs that point to more
// memory, here and on the device, graphs, host functions, streams of a thread. A program's own handler of
// SIGSEGV, threads that block every signal, children and system calls notice nothing of it.
#include <fcntl.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <chrono>
#include <csetjmp>
#include <thread>

#include "common.hh"

using clock_type = std::chrono::steady_clock;
using namespace std::chrono_literals;

__managed__ int shared_count;
__managed__ int second_count;

__global__ void count_up(int* sum, int rounds) {
  for (int i = 0; i < rounds; i++) atomicAdd_system(sum, 1);
}

__global__ void count_variables(int rounds) {
  for (int i = 0; i < rounds; i++) atomicAdd_system(&shared_count, 1), atomicAdd_system(&second_count, 2);
}

struct mailbox {
  volatile int question, answer, stop;
  int* count;
  mailbox* next;
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

/// Counts the first half up until it is told to stop.
__global__ void first_half(int* data, int n, mailbox* box, long long patience) {
  const long long begin = clock64();
  do {
    for (int i = 0; i < n / 2; i++) data[i]++;
    __threadfence_system();
  } while (!box->stop && clock64() - begin < patience);
}

__global__ void through_pointers(mailbox* box, int rounds) {
  for (int i = 0; i < rounds; i++) atomicAdd_system(box->next->count, 1);
}

/// Names where a parameter lies, and changes nothing there.
__global__ void through_words(int** where) { atomicAdd_system(*where, 0); }

__global__ void add_one(int* data, int n) {
  for (int i = threadIdx.x; i < n; i += blockDim.x) atomicAdd_system(&data[i], 1);
}

constexpr int many = 16;

struct counted {
  volatile int question;
  int count;
};
struct counted_blocks {
  counted* of[many];
};

__global__ void wait_for_all(counted_blocks all, int round, long long patience) {
  const long long begin = clock64();
  for (int i = 0; i < many; i++) {
    while (all.of[i]->question != round && clock64() - begin < patience) {
    }
  }
}

__global__ void count_all(counted_blocks all, int rounds) {
  for (int i = 0; i < many; i++) {
    for (int k = 0; k < rounds; k++) atomicAdd_system(&all.of[i]->count, 1);
  }
}

constexpr long long patience = 60'000'000'000ll;

template <class T>
T* managed(std::size_t count = 1) {
  T* made;
  MUST(cudaMallocManaged(&made, count * sizeof(T)));
  return made;
}

void atomics() {
  int* sum = managed<int>();
  constexpr int rounds = 20, times = 1000;
  *sum = 0;
  for (int round = 0; round < rounds; round++) {
    count_up<<<2, 32>>>(sum, 10);
    for (int i = 0; i < times; i++) __atomic_fetch_add(sum, 1, __ATOMIC_RELAXED);
  }
  MUST(cudaDeviceSynchronize());
  EXPECT(*sum == rounds * (640 + times));
  for (int round = 0; round < rounds; round++) {  // a stream that only this thread can name
    count_up<<<2, 32, 0, cudaStreamPerThread>>>(sum, 10);
    __atomic_fetch_add(sum, 1, __ATOMIC_RELAXED);
  }
  MUST(cudaDeviceSynchronize());
  EXPECT(*sum == rounds * (640 + times) + rounds * 641);
  shared_count = second_count = 0;
  for (int round = 0; round < rounds; round++) {
    count_variables<<<1, 32>>>(10);
    __atomic_fetch_add(&shared_count, 1, __ATOMIC_RELAXED);
    __atomic_fetch_add(&second_count, 1, __ATOMIC_RELAXED);
  }
  MUST(cudaDeviceSynchronize());
  EXPECT(shared_count == rounds * 321 && second_count == rounds * 641);
  MUST(cudaFree(sum));
}

void polling() {
  constexpr int rounds = 20;
  mailbox* box = managed<mailbox>();
  box->question = box->answer = 0;
  answerer<<<1, 1>>>(box, rounds, patience);
  const auto give_up = clock_type::now() + 30s;
  for (int round = 1; round <= rounds; round++) {
    box->question = round;
    while (box->answer != round * round) EXPECT(clock_type::now() < give_up);
    EXPECT(round == rounds || cudaStreamQuery(nullptr) == cudaErrorNotReady);
  }
  MUST(cudaDeviceSynchronize());
  MUST(cudaFree(box));
}

void two_halves() {
  constexpr int n = 1 << 16;
  int* data = managed<int>(n);
  int* other = managed<int>(n);
  mailbox* box = managed<mailbox>();
  for (int i = 0; i < n; i++) data[i] = other[i] = 0;
  box->stop = 0;
  first_half<<<1, 1>>>(data, n, box, patience);
  for (int i = 0; i < n; i++) other[i] = i;  // no kernel knows it
  for (int i = n / 2; i < n; i++) data[i] = i;
  while (__atomic_load_n(data, __ATOMIC_RELAXED) == 0) {
  }
  EXPECT(cudaStreamQuery(nullptr) == cudaErrorNotReady);
  box->stop = 1;
  MUST(cudaDeviceSynchronize());
  for (int i = 0; i < n / 2; i++) EXPECT(data[i] == data[0] && data[i] > 0);
  for (int i = n / 2; i < n; i++) EXPECT(data[i] == i);
  add_one<<<1, 64>>>(other, n);
  add_one<<<1, 64>>>(data, n);
  for (int i = 0; i < n; i++) __atomic_fetch_add(&other[i], 1, __ATOMIC_RELAXED);
  MUST(cudaDeviceSynchronize());
  for (int i = 0; i < n; i++) EXPECT(other[i] == i + 2);
  for (int i = n / 2; i < n; i++) EXPECT(data[i] == i + 1);
  MUST(cudaFree(data));
  MUST(cudaFree(other));
  MUST(cudaFree(box));
}

/// Blocks that the host wrote while a kernel ran are used again as soon as it has ended.
void used_again() {
  counted_blocks all;
  for (counted*& block : all.of) *(block = managed<counted>()) = {};
  for (int round = 1; round <= 3; round++) {
    wait_for_all<<<1, 1>>>(all, round, patience);
    std::vector<std::thread> askers;
    for (counted* block : all.of) askers.emplace_back([=] { block->question = round; });
    for (std::thread& asker : askers) asker.join();
    MUST(cudaDeviceSynchronize());
    for (counted* block : all.of) block->count = 0;
    count_all<<<1, 32>>>(all, 10);
    for (counted* block : all.of) __atomic_fetch_add(&block->count, 1, __ATOMIC_RELAXED);
    MUST(cudaDeviceSynchronize());
    for (counted* block : all.of) EXPECT(block->count == 321);
  }
  for (counted* block : all.of) MUST(cudaFree(block));
}

/// Before and after the kernel that has just been launched, if nothing holds it back.
void add_now_and_then(int* count, int times) {
  for (int i = 0; i < times; i++) {
    if (i == times / 2) usleep(2000);
    __atomic_fetch_add(count, 1, __ATOMIC_RELAXED);
  }
}

void pointers() {
  mailbox *first = managed<mailbox>(), *second = managed<mailbox>();
  int* count = managed<int>();
  *count = 0;
  second->count = count;
  first->next = second;
  for (int round = 0; round < 10; round++) {
    through_pointers<<<1, 32>>>(first, 10);
    add_now_and_then(count, 100);
  }
  MUST(cudaDeviceSynchronize());
  EXPECT(*count == 4200);
  MUST(cudaFree(first));
  MUST(cudaFree(second));
  MUST(cudaFree(count));
}

/// The address lies in memory of the device, where a copy has put it.
void uploaded_pointers() {
  int* count = managed<int>();
  *count = 0;
  mailbox* there;
  MUST(cudaMalloc(&there, 2 * sizeof *there));
  mailbox both[2] = {};
  both[0].next = there + 1;
  both[1].count = count;
  MUST(cudaMemcpy(there, both, sizeof both, cudaMemcpyHostToDevice));
  constexpr int rounds = 20, times = 1000;
  for (int round = 0; round < rounds; round++) {
    through_pointers<<<2, 32>>>(there, 10);
    add_now_and_then(count, times);
  }
  MUST(cudaDeviceSynchronize());
  EXPECT(*count == rounds * (640 + times));
  MUST(cudaFree(there));
  MUST(cudaFree(count));
}

/// A launch of a graph says no address at all.
void graphs() {
  int* sum = managed<int>();
  *sum = 0;
  cudaStream_t stream;
  cudaGraph_t graph;
  cudaGraphExec_t exec;
  MUST(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
  MUST(cudaStreamBeginCapture(stream, cudaStreamCaptureModeGlobal));
  count_up<<<2, 32, 0, stream>>>(sum, 10);
  MUST(cudaStreamEndCapture(stream, &graph));
  MUST(cudaGraphInstantiate(&exec, graph, 0));
  constexpr int rounds = 20, times = 1000;
  for (int round = 0; round < rounds; round++) {
    MUST(cudaGraphLaunch(exec, stream));
    add_now_and_then(sum, times);
  }
  MUST(cudaStreamSynchronize(stream));
  EXPECT(*sum == rounds * (640 + times));
  MUST(cudaGraphExecDestroy(exec));
  MUST(cudaGraphDestroy(graph));
  MUST(cudaStreamDestroy(stream));
  MUST(cudaFree(sum));
}

void fills_and_copies() {
  constexpr int n = 1 << 14;
  int* data = managed<int>(n);
  int* device;
  std::vector<int> host(n, 7);
  MUST(cudaMalloc(&device, n * sizeof(int)));
  for (int i = 0; i < n; i++) data[i] = i;
  MUST(cudaMemsetAsync(data, 0, n * sizeof(int), 0));
  MUST(cudaStreamSynchronize(0));
  EXPECT(data[n - 1] == 0 && data[0] == 0);
  MUST(cudaMemcpyAsync(device, host.data(), n * sizeof(int), cudaMemcpyHostToDevice, 0));
  MUST(cudaMemcpyAsync(data, device, n * sizeof(int), cudaMemcpyDefault, 0));
  cudaEvent_t copied;
  MUST(cudaEventCreate(&copied));
  MUST(cudaEventRecord(copied, 0));
  MUST(cudaEventSynchronize(copied));
  MUST(cudaEventDestroy(copied));
  EXPECT(data[5] == 7);
  add_one<<<1, 64>>>(data, n);
  MUST(cudaMemcpy(host.data(), data, n * sizeof(int), cudaMemcpyDeviceToHost));
  EXPECT(host[n - 1] == 8 && data[n - 1] == 8);
  MUST(cudaFree(device));
  MUST(cudaFree(data));
}

/// Copies that name it as memory of the host, and parameters that lie in it.
void as_host_memory() {
  constexpr int n = 1 << 16;
  int* data = managed<int>(n);
  int** where = managed<int*>();
  int* device;
  std::vector<int> host(n);
  MUST(cudaMalloc(&device, n * sizeof(int)));
  for (int i = 0; i < n; i++) data[i] = i;
  for (int round = 1; round <= 4; round++) {
    *where = data;
    add_one<<<1, 64>>>(data, n);
    void* parameters[] = {where, const_cast<int*>(&n)};
    through_words<<<1, 1>>>(where);
    MUST(cudaLaunchKernel(reinterpret_cast<const void*>(add_one), 1, 64, parameters, 0, nullptr));
    MUST(cudaMemcpy(device, data, n * sizeof(int), cudaMemcpyHostToDevice));
    MUST(cudaMemcpy(host.data(), device, n * sizeof(int), cudaMemcpyDeviceToHost));
    for (int i = 0; i < n; i++) EXPECT(host[i] == i + 2 * round);
    add_one<<<1, 64>>>(device, n);
    MUST(cudaMemcpyAsync(data, device, n * sizeof(int), cudaMemcpyDeviceToHost, 0));
    add_one<<<1, 64>>>(data, n);
    MUST(cudaMemcpy2D(device, n, data, n, n, 4, cudaMemcpyHostToDevice));
    MUST(cudaMemcpy(host.data(), device, n * sizeof(int), cudaMemcpyDeviceToHost));
    for (int i = 0; i < n; i++) EXPECT(host[i] == i + 2 * round + 2);
    for (int i = 0; i < n; i++) data[i] -= 2;
  }
  MUST(cudaFree(device));
  MUST(cudaFree(data));
  MUST(cudaFree(where));
}

void host_function() {
  struct order {
    int* data;
    int seen;
  } o{managed<int>(1024), 0};
  for (int i = 0; i < 1024; i++) o.data[i] = 0;
  const auto begin = clock_type::now();
  for (int round = 0; round < 5; round++) {
    add_one<<<1, 64>>>(o.data, 1024);
    MUST(cudaLaunchHostFunc(
        0,
        [](void* p) {
          auto* mine = static_cast<order*>(p);
          mine->seen = mine->data[1023];
          mine->data[1023] += 10;
        },
        &o));
    add_one<<<1, 64>>>(o.data, 1024);
  }
  MUST(cudaDeviceSynchronize());
  EXPECT(o.data[0] == 10 && o.data[1023] == 60 && o.seen == 49);
  EXPECT(clock_type::now() - begin < 20s);
  MUST(cudaFree(o.data));
}

void many_threads() {
  int* sum = managed<int>(1 << 12);
  for (int i = 0; i < 1 << 12; i++) sum[i] = 0;
  std::atomic<bool> go{false};
  std::vector<std::thread> threads;
  for (int t = 0; t < 8; t++) {
    threads.emplace_back([&] {
      sigset_t all;
      sigfillset(&all);
      pthread_sigmask(SIG_SETMASK, &all, nullptr);
      while (!go) {
      }
      for (int i = 0; i < 1 << 12; i++) __atomic_fetch_add(&sum[i], 1, __ATOMIC_RELAXED);
    });
  }
  for (int round = 0; round < 4; round++) {
    add_one<<<1, 64>>>(sum, 1 << 12);
    go = true;
  }
  for (auto& t : threads) t.join();
  MUST(cudaDeviceSynchronize());
  for (int i = 0; i < 1 << 12; i++) EXPECT(sum[i] == 12);
  MUST(cudaFree(sum));
}

sigjmp_buf back;
volatile sig_atomic_t handled = 0;

void on_fault(int) {
  handled = handled + 1;
  siglongjmp(back, 1);
}

void own_fault() {
  volatile int* page = static_cast<int*>(mmap(nullptr, 4096, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
  const int before = handled;
  if (sigsetjmp(back, 1) == 0) (void)*page;
  EXPECT(handled == before + 1);
  munmap(const_cast<int*>(page), 4096);
}

/// The program's handler sees the program's faults and no others, whenever it was set.
void handlers(bool first) {
  struct sigaction mine {};
  mine.sa_handler = on_fault;
  if (first) MUST(sigaction(SIGSEGV, &mine, nullptr));
  own_fault();
  int* sum = managed<int>();
  *sum = 0;
  count_up<<<1, 32>>>(sum, 100);
  if (!first) MUST(sigaction(SIGSEGV, &mine, nullptr));
  const int before = handled;
  __atomic_fetch_add(sum, 1, __ATOMIC_RELAXED);
  MUST(cudaDeviceSynchronize());
  EXPECT(handled == before && *sum == 3201);
  own_fault();
  MUST(cudaFree(sum));
}

void children() {
  int* data = managed<int>(1024);
  for (int i = 0; i < 1024; i++) data[i] = 0;
  add_one<<<1, 64>>>(data, 1024);
  const pid_t child = fork();
  if (child == 0) {
    execl("/bin/true", "true", nullptr);
    _exit(9);
  }
  int status = -1;
  EXPECT(waitpid(child, &status, 0) == child && WIFEXITED(status) && WEXITSTATUS(status) == 0);
  __atomic_fetch_add(&data[1023], 1, __ATOMIC_RELAXED);
  MUST(cudaDeviceSynchronize());
  EXPECT(data[1023] == 2);
  MUST(cudaFree(data));
}

void system_calls() {
  int* data = managed<int>(1024);
  for (int i = 0; i < 1024; i++) data[i] = i;
  int ends[2];
  EXPECT(pipe(ends) == 0);
  add_one<<<1, 64>>>(data, 1024);
  MUST(cudaDeviceSynchronize());
  EXPECT(write(ends[1], data, 4096) == 4096);
  int* idle = managed<int>(1024);
  std::thread reader([&] { EXPECT(read(ends[0], idle, 4096) == 4096); });
  reader.join();
  for (int i = 0; i < 1024; i++) EXPECT(idle[i] == i + 1);
  // What a kernel may still use: the call waits, where the process may ask for that.
  const int asked = static_cast<int>(syscall(SYS_userfaultfd, O_CLOEXEC));
  add_one<<<1, 64>>>(data, 1024);
  const bool written = write(ends[1], data, 4096) == 4096;
  EXPECT(written || (asked < 0 && errno == EFAULT));
  MUST(cudaDeviceSynchronize());
  EXPECT(!written || read(ends[0], idle, 4096) == 4096);
  if (asked >= 0) close(asked);
  close(ends[0]);
  close(ends[1]);
  MUST(cudaFree(data));
  MUST(cudaFree(idle));
}

void hints() {
  constexpr std::size_t n = 1 << 20;
  char* data = managed<char>(n);
  const cudaMemLocation here{cudaMemLocationTypeDevice, 0}, host{cudaMemLocationTypeHost, 0};
  MUST(cudaMemAdvise(data, n, cudaMemAdviseSetPreferredLocation, here));
  MUST(cudaMemAdvise(data, n, cudaMemAdviseSetAccessedBy, host));
  int where = -9;
  MUST(cudaMemRangeGetAttribute(&where, sizeof where, cudaMemRangeAttributePreferredLocation, data, n));
  EXPECT(where == 0);
  MUST(cudaMemPrefetchAsync(data, n, here, 0));
  for (std::size_t i = 0; i < n; i += 4096) data[i] = 3;
  MUST(cudaMemPrefetchAsync(data, n, host, 0));
  for (std::size_t i = 0; i < n; i += 4096) EXPECT(data[i] == 3);
  MUST(cudaDeviceSynchronize());
  MUST(cudaMemAdvise(data, n, cudaMemAdviseSetReadMostly, here));
  MUST(cudaMemAdvise(data, n, cudaMemAdviseUnsetReadMostly, here));
  MUST(cudaMemAdvise(data, n, cudaMemAdviseUnsetPreferredLocation, here));
  MUST(cudaFree(data));
}

int main(int count, char** values) {
  int concurrent = 0;
  MUST(cudaDeviceGetAttribute(&concurrent, cudaDevAttrConcurrentManagedAccess, 0));
  if (!concurrent) {
    std::printf("SKIP managed_concurrent: the device says that it cannot\n");
    return 77;
  }
  struct part {
    const char* name;
    void (*run)();
  };
  const part parts[] = {{"handler first", [] { handlers(true); }},
                        {"handler later", [] { handlers(false); }},
                        {"atomics", atomics},
                        {"polling", polling},
                        {"two halves", two_halves},
                        {"used again", used_again},
                        {"pointers", pointers},
                        {"uploaded pointers", uploaded_pointers},
                        {"graphs", graphs},
                        {"fills and copies", fills_and_copies},
                        {"as host memory", as_host_memory},
                        {"host function", host_function},
                        {"many threads", many_threads},
                        {"children", children},
                        {"system calls", system_calls},
                        {"hints", hints}};
  for (const part& p : parts) {
    const auto begin = clock_type::now();
    p.run();
    if (count > 1)
      std::printf("%s: %.1f ms\n", p.name,
                  std::chrono::duration<double, std::milli>(clock_type::now() - begin).count());
  }
  return pass("managed_concurrent");
}
