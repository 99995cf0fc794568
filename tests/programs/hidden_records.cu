// Processes with a profiler inside that see some of the machine's devices, or see them in another order
// (CUDA_VISIBLE_DEVICES): CUPTI's records number devices as the program does. With one device it is seen
// alone; the lists that change numbers need two. It prints PASS. Natively the same.
#include <cuda_runtime.h>
#include <cupti.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstring>
#include <map>
#include <mutex>
#include <set>
#include <string>

#include "common.hh"

std::mutex mutex;
std::map<std::string, std::set<uint32_t>> kernels;             // devices by the kernel's name
std::map<uint32_t, std::set<uint32_t>> fills, copies, blocks;  // devices by the number of bytes
std::map<uint32_t, CUuuid> devices;
std::set<uint32_t> contexts;

__global__ void on_first(int* p) { *p += 1; }
__global__ void on_second(int* p) { *p += 2; }

void give(uint8_t** buffer, size_t* bytes, size_t* most) {
  *bytes = 64 << 10;
  *buffer = static_cast<uint8_t*>(std::aligned_alloc(8, *bytes));
  *most = 0;
}

template <class Record>
void note(const CUpti_Activity* record, std::map<uint32_t, std::set<uint32_t>>& by_bytes) {
  const auto* r = reinterpret_cast<const Record*>(record);
  by_bytes[static_cast<uint32_t>(r->bytes)].insert(r->deviceId);
}

void take(CUcontext, uint32_t, uint8_t* buffer, size_t, size_t valid) {
  const std::lock_guard<std::mutex> lock(mutex);
  CUpti_Activity* record = nullptr;
  while (cuptiActivityGetNextRecord(buffer, valid, &record) == CUPTI_SUCCESS) {
    switch (record->kind) {
      case CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL: {
        const auto* k = reinterpret_cast<CUpti_ActivityKernel10*>(record);
        kernels[std::strstr(k->name, "on_first") ? "on_first" : k->name].insert(k->deviceId);
        break;
      }
      case CUPTI_ACTIVITY_KIND_MEMSET:
        note<CUpti_ActivityMemset4>(record, fills);
        break;
      case CUPTI_ACTIVITY_KIND_MEMCPY:
        note<CUpti_ActivityMemcpy6>(record, copies);
        break;
      case CUPTI_ACTIVITY_KIND_MEMORY2:
        note<CUpti_ActivityMemory4>(record, blocks);
        break;
      case CUPTI_ACTIVITY_KIND_DEVICE: {
        const auto* d = reinterpret_cast<CUpti_ActivityDevice5*>(record);
        devices[d->id] = d->uuid;
        break;
      }
      case CUPTI_ACTIVITY_KIND_CONTEXT:
        contexts.insert(reinterpret_cast<CUpti_ActivityContext3*>(record)->deviceId);
        break;
      default:
        break;
    }
  }
  std::free(buffer);
}

/// Kinds of work that name the device, each of a size that no other device's has.
void work_on(int device) {
  const size_t bytes = 4096u << device;
  int* block = nullptr;
  std::vector<char> host(bytes);
  MUST(cudaSetDevice(device));
  MUST(cudaMalloc(&block, bytes));
  MUST(cudaMemset(block, 0, bytes));
  if (device == 0) {
    on_first<<<1, 1>>>(block);
  } else {
    on_second<<<1, 1>>>(block);
  }
  MUST(cudaMemcpy(host.data(), block, bytes, cudaMemcpyDeviceToHost));
  MUST(cudaDeviceSynchronize());
  MUST(cudaFree(block));
}

/// A process that sees `visible` only, which are `count` devices.
void look(const char* visible, int count) {
  EXPECT(::setenv("CUDA_VISIBLE_DEVICES", visible, 1) == 0);
  MUST(cuptiActivityRegisterCallbacks(give, take));
  for (const auto kind :
       {CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL, CUPTI_ACTIVITY_KIND_MEMSET, CUPTI_ACTIVITY_KIND_MEMCPY,
        CUPTI_ACTIVITY_KIND_MEMORY2, CUPTI_ACTIVITY_KIND_DEVICE, CUPTI_ACTIVITY_KIND_CONTEXT})
    MUST(cuptiActivityEnable(kind));
  int seen = 0;
  MUST(cudaGetDeviceCount(&seen));
  EXPECT(seen == count);
  for (int device = 0; device < count; ++device) work_on(device);
  MUST(cuptiActivityFlushAll(CUPTI_ACTIVITY_FLAG_FLUSH_FORCED));
  const std::lock_guard<std::mutex> lock(mutex);
  std::set<uint32_t> all;
  for (uint32_t device = 0; device < static_cast<uint32_t>(count); ++device) {
    const std::set<uint32_t> alone{device};
    const uint32_t bytes = 4096u << device;
    all.insert(device);
    EXPECT(fills[bytes] == alone && copies[bytes] == alone && blocks[bytes] == alone);
    cudaDeviceProp about{};
    MUST(cudaGetDeviceProperties(&about, static_cast<int>(device)));
    EXPECT(devices.count(device) == 1);
    EXPECT(std::memcmp(&devices[device], &about.uuid, sizeof about.uuid) == 0);
  }
  EXPECT(kernels["on_first"] == std::set<uint32_t>{0});
  EXPECT(kernels.size() == static_cast<size_t>(count));
  for (const auto& [name, on] : kernels) EXPECT(name == "on_first" || on == std::set<uint32_t>{1});
  // NVIDIA's CUPTI tells of the hidden ones, too, behind those that the program sees.
  EXPECT(contexts == all && devices.size() >= all.size());
}

/// What a process of its own, which alone may have looked at CUDA, ends with.
template <class Act>
int in_process(const Act& act) {
  std::fflush(stdout);
  const pid_t child = ::fork();
  EXPECT(child >= 0);
  if (child == 0) std::exit(act());
  int status = 0;
  EXPECT(::waitpid(child, &status, 0) == child && WIFEXITED(status));
  return WEXITSTATUS(status);
}

int main() {
  const int there = in_process([] {
    int count = 0;
    return cudaGetDeviceCount(&count) == cudaSuccess ? count : 0;
  });
  EXPECT(there > 0);
  const auto sees = [](const char* visible, int count) {
    std::printf("CUDA_VISIBLE_DEVICES=%s\n", visible);
    EXPECT(in_process([&] { return look(visible, count), 0; }) == 0);
  };
  sees("0", 1);
  if (there > 1) {
    sees("1", 1);
    sees("1,0", 2);
  }
  return pass("hidden_records");
}
