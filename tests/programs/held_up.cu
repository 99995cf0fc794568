// What a program may do while its own host function runs, even where the driver waits for that function: more
// launches than a stream takes, loading and unloading code, freeing memory of every kind, large copies. The
// function sees and changes memory that kernels use.
#include <atomic>
#include <chrono>
#include <cstring>
#include <thread>

#include "common.hh"

__global__ void add(int* x, int n) { *x += n; }

namespace {

const char* const code = R"(.version 7.0
.target sm_52
.address_size 64
.visible .entry twice(.param .u64 p) {
  .reg .u64 %a;
  .reg .u32 %x;
  ld.param.u64 %a, [p];
  ld.global.u32 %x, [%a];
  add.u32 %x, %x, %x;
  st.global.u32 [%a], %x;
  ret;
}
)";

struct stream {
  cudaStream_t s = nullptr;
  stream() { MUST(cudaStreamCreateWithFlags(&s, cudaStreamNonBlocking)); }
  ~stream() { cudaStreamDestroy(s); }
  operator cudaStream_t() const { return s; }
};

/// Host memory that kernels can see too.
struct shared_number {
  int *host = nullptr, *device = nullptr;
  shared_number() {
    MUST(cudaHostAlloc(&host, sizeof(int), cudaHostAllocMapped));
    *host = 0;
    MUST(cudaHostGetDevicePointer(&device, host, 0));
  }
  ~shared_number() { cudaFreeHost(host); }
};

struct visit {
  volatile int* number;
  std::atomic<int> seen{-1};
};

void CUDART_CB look_and_add(void* data) {
  visit* v = static_cast<visit*>(data);
  v->seen = *v->number;
  std::this_thread::sleep_for(std::chrono::milliseconds(50));
  *v->number = *v->number + 100;
}

/// `meanwhile` is called as soon as the function is in the stream; what it enqueues runs behind it.
template <class Meanwhile>
void during(const shared_number& number, cudaStream_t s, Meanwhile meanwhile) {
  *number.host = 0;
  visit v{number.host};
  add<<<1, 1, 0, s>>>(number.device, 1);
  MUST(cudaLaunchHostFunc(s, look_and_add, &v));
  const int more = meanwhile();
  MUST(cudaStreamSynchronize(s));
  EXPECT(v.seen == 1);
  EXPECT(*number.host == 101 + more);
}

void many_launches(const shared_number& number, cudaStream_t s) {
  during(number, s, [&] {
    for (int i = 0; i < 3000; ++i) add<<<1, 1, 0, s>>>(number.device, 1);
    MUST(cudaGetLastError());
    return 3000;
  });
}

void many_copies(const shared_number& number, cudaStream_t s) {
  constexpr std::size_t bytes = 80u << 20;
  std::vector<char> from(bytes, 3), to(bytes);
  char* device = nullptr;
  MUST(cudaMalloc(&device, bytes));
  during(number, s, [&] {
    for (int i = 0; i < 4; ++i) MUST(cudaMemcpyAsync(device, from.data(), bytes, cudaMemcpyHostToDevice, s));
    MUST(cudaMemcpyAsync(to.data(), device, bytes, cudaMemcpyDeviceToHost, s));
    return 0;
  });
  EXPECT(from == to);
  MUST(cudaFree(device));
}

void code_comes_and_goes(const shared_number& number, cudaStream_t s) {
  for (int i = 0; i < 3; ++i) {
    cudaLibrary_t library = nullptr;
    cudaKernel_t kernel = nullptr;
    during(number, s, [&] {
      MUST(cudaLibraryLoadData(&library, code, nullptr, nullptr, 0, nullptr, nullptr, 0));
      return 0;
    });
    during(number, s, [&] {
      MUST(cudaLibraryGetKernel(&kernel, library, "twice"));
      int* at = number.device;
      void* arguments[] = {&at};
      MUST(cudaLaunchKernel(reinterpret_cast<const void*>(kernel), dim3(1), dim3(1), arguments, 0, s));
      return 101;  // twice 101
    });
    during(number, s, [&] {
      MUST(cudaLibraryUnload(library));
      add<<<1, 1, 0, s>>>(number.device, 1);
      return 1;
    });
  }
}

void memory_comes_and_goes(const shared_number& number, cudaStream_t s) {
  std::vector<char> registered(1 << 20);
  for (int i = 0; i < 3; ++i) {
    void *device = nullptr, *host = nullptr, *managed = nullptr;
    cudaArray_t array = nullptr;
    const cudaChannelFormatDesc format = cudaCreateChannelDesc<float>();
    during(number, s, [&] {
      MUST(cudaMalloc(&device, 1 << 20));
      MUST(cudaHostAlloc(&host, 1 << 20, cudaHostAllocMapped));
      MUST(cudaMallocManaged(&managed, 1 << 20));
      MUST(cudaMallocArray(&array, &format, 64, 64));
      MUST(cudaHostRegister(registered.data(), registered.size(), cudaHostRegisterMapped));
      return 0;
    });
    during(number, s, [&] {
      MUST(cudaFree(device));
      return 0;
    });
    during(number, s, [&] {
      MUST(cudaFreeHost(host));
      return 0;
    });
    during(number, s, [&] {
      MUST(cudaFree(managed));
      return 0;
    });
    during(number, s, [&] {
      MUST(cudaFreeArray(array));
      return 0;
    });
    during(number, s, [&] {
      MUST(cudaHostUnregister(registered.data()));
      return 0;
    });
  }
}

/// Another thread's work in another stream continues meanwhile.
void beside(const shared_number& number, cudaStream_t s) {
  stream other;
  shared_number own;
  during(number, s, [&] {
    std::thread worker([&] {
      for (int i = 0; i < 20; ++i) {
        add<<<1, 1, 0, other>>>(own.device, 1);
        MUST(cudaStreamSynchronize(other));
        EXPECT(*own.host == i + 1);
      }
    });
    worker.join();
    return 0;
  });
}

}  // namespace

int main() {
  const shared_number number;
  const stream s;
  many_launches(number, s);
  code_comes_and_goes(number, s);
  memory_comes_and_goes(number, s);
  beside(number, s);
  many_copies(number, s);
  return pass("held_up");
}
