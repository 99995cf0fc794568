// A device shaped by the server's configuration, as a program sees it: the driver and NVML give the same name
// and memory, and every way to allocate fails at the limit, in the call itself, and breaks nothing.
// usage: shaped_devices NAME BYTES [DEVICES]: the name of device 0, its memory, the number of devices.
#include <cuda.h>
#include <dlfcn.h>

#include <cstdlib>
#include <string>
#include <vector>

#include "corners.hh"

namespace {

using nvml_code = int;
struct nvml_memory {
  unsigned long long total, free, used;
};
struct nvml_memory_v2 {
  unsigned version;
  unsigned long long total, reserved, free, used;
};

void* library = nullptr;
void* board = nullptr;
std::size_t total = 0;

template <class... A>
nvml_code nvml(const char* name, A... arguments) {
  auto* entry = reinterpret_cast<nvml_code (*)(A...)>(::dlsym(library, name));
  EXPECT(entry != nullptr);
  return entry(arguments...);
}

std::size_t free_bytes() {
  std::size_t free = 0, all = 0;
  MUST(cuMemGetInfo(&free, &all));
  EXPECT(all == total && free <= total);
  return free;
}

void both_agree(std::size_t slack) {
  const std::size_t free = free_bytes();
  nvml_memory v1{};
  nvml_memory_v2 v2{};
  v2.version = sizeof v2 | 2u << 24;
  EXPECT(nvml("nvmlDeviceGetMemoryInfo", board, &v1) == 0 &&
         nvml("nvmlDeviceGetMemoryInfo_v2", board, &v2) == 0);
  EXPECT(v1.total == total && v2.total == total && v2.used == v1.used && v2.reserved == 0);
  EXPECT(v1.used + v1.free <= total && v2.used + v2.free <= total);
  const std::size_t held = total - free;
  EXPECT(v1.used <= held && held - v1.used <= slack);
}

void names(const char* name, int devices) {
  char text[256] = "";
  int count = 0;
  unsigned boards = 0;
  std::size_t bytes = 0;
  MUST(cuDeviceGetName(text, sizeof text, device));
  EXPECT(std::string(text) == name);
  EXPECT(nvml("nvmlDeviceGetName", board, text, 96u) == 0);
  EXPECT(std::string(text) == name);
  EXPECT(nvml("nvmlDeviceGetName", board, text, 3u) == 7);  // NVML_ERROR_INSUFFICIENT_SIZE
  MUST(cuDeviceTotalMem(&bytes, device));
  EXPECT(bytes == total);
  MUST(cuDeviceGetCount(&count));
  EXPECT(count == devices);
  EXPECT(nvml("nvmlDeviceGetCount_v2", &boards) == 0);
  EXPECT(static_cast<int>(boards) == devices);
}

/// Order and identity: device i of the driver is board i of NVML.
void same_boards(int devices) {
  for (int i = 0; i < devices; i++) {
    void* other = nullptr;
    char driver[32] = "", uuid[96] = "", id[40] = "GPU-";
    CUuuid of_driver{};
    MUST(cuDeviceGetPCIBusId(driver, sizeof driver, i));
    MUST(cuDeviceGetUuid(&of_driver, i));
    EXPECT(nvml("nvmlDeviceGetHandleByIndex_v2", static_cast<unsigned>(i), &other) == 0);
    EXPECT(nvml("nvmlDeviceGetUUID", other, uuid, 96u) == 0);
    std::string text = id;
    for (int k = 0; k < 16; k++) {
      char byte[4];
      std::snprintf(byte, sizeof byte, "%02x", static_cast<unsigned char>(of_driver.bytes[k]));
      text += std::string(k == 4 || k == 6 || k == 8 || k == 10 ? "-" : "") + byte;
    }
    EXPECT(text == uuid);
  }
}

/// `take` allocates and returns the code; `give` frees the memory again.
template <class Take, class Give>
void ends_at_the_limit(const char* what, Take&& take, Give&& give) {
  const std::size_t before = free_bytes();
  const int big = take(before + (4u << 20)), fits = take(before / 2);
  if (big != CUDA_ERROR_OUT_OF_MEMORY || fits != CUDA_SUCCESS) {
    std::printf("FAIL %s: beyond the limit %d, within it %d\n", what, big, fits);
    std::exit(1);
  }
  const std::size_t after = free_bytes();
  EXPECT(after <= before - before / 2 && after + (4u << 20) >= before - before / 2);
  both_agree(4u << 20);
  const int again = take(after + (4u << 20));
  EXPECT(again == CUDA_ERROR_OUT_OF_MEMORY);
  give();
  MUST(cuCtxSynchronize());
  EXPECT(free_bytes() == before);
}

void every_way() {
  CUdeviceptr at = 0;
  ends_at_the_limit(
      "cuMemAlloc", [&](std::size_t n) { return cuMemAlloc(&at, n); }, [&] { MUST(cuMemFree(at)); });
  ends_at_the_limit(
      "cuMemAllocManaged", [&](std::size_t n) { return cuMemAllocManaged(&at, n, CU_MEM_ATTACH_GLOBAL); },
      [&] { MUST(cuMemFree(at)); });
  ends_at_the_limit(
      "cuMemAllocAsync", [&](std::size_t n) { return cuMemAllocAsync(&at, n, nullptr); },
      [&] { MUST(cuMemFreeAsync(at, nullptr)); });
  CUmemGenericAllocationHandle memory = 0;
  CUmemAllocationProp prop{};
  prop.type = CU_MEM_ALLOCATION_TYPE_PINNED;
  prop.location.type = CU_MEM_LOCATION_TYPE_DEVICE;
  const auto whole = [](std::size_t n) { return (n + (2u << 20) - 1) >> 21 << 21; };
  ends_at_the_limit(
      "cuMemCreate", [&](std::size_t n) { return cuMemCreate(&memory, whole(n), &prop, 0); },
      [&] { MUST(cuMemRelease(memory)); });
  CUarray array = nullptr;
  ends_at_the_limit(
      "cuArrayCreate",
      [&](std::size_t n) {
        const CUDA_ARRAY3D_DESCRIPTOR about{1024, (n + (1 << 14) - 1) >> 14, 0, CU_AD_FORMAT_FLOAT, 4, 0};
        return cuArray3DCreate(&array, &about);
      },
      [&] { MUST(cuArrayDestroy(array)); });
}

/// Memory that is mapped counts, though its handle was released.
void mapped_memory() {
  const std::size_t before = free_bytes(), size = 32u << 20;
  CUmemGenericAllocationHandle memory = 0;
  CUdeviceptr at = 0;
  CUmemAllocationProp prop{};
  prop.type = CU_MEM_ALLOCATION_TYPE_PINNED;
  prop.location.type = CU_MEM_LOCATION_TYPE_DEVICE;
  MUST(cuMemCreate(&memory, size, &prop, 0));
  MUST(cuMemAddressReserve(&at, size, 0, 0, 0));
  MUST(cuMemMap(at, size, 0, memory, 0));
  MUST(cuMemRelease(memory));
  EXPECT(free_bytes() == before - size);
  MUST(cuMemUnmap(at, size));
  MUST(cuMemAddressFree(at, size));
  EXPECT(free_bytes() == before);
}

/// Memory that a pool keeps counts, and is returned before an allocation fails.
void kept_by_a_pool() {
  CUmemoryPool pool = nullptr;
  CUmemPoolProps props{};
  props.allocType = CU_MEM_ALLOCATION_TYPE_PINNED;
  props.location.type = CU_MEM_LOCATION_TYPE_DEVICE;
  MUST(cuMemPoolCreate(&pool, &props));
  cuuint64_t for_ever = ~0ull;
  MUST(cuMemPoolSetAttribute(pool, CU_MEMPOOL_ATTR_RELEASE_THRESHOLD, &for_ever));
  const std::size_t before = free_bytes();
  CUdeviceptr at = 0;
  MUST(cuMemAllocFromPoolAsync(&at, before / 2, pool, nullptr));
  MUST(cuMemFreeAsync(at, nullptr));
  MUST(cuCtxSynchronize());
  const std::size_t kept = before - free_bytes();
  EXPECT(kept == 0 || kept >= before / 2);
  MUST(cuMemAllocFromPoolAsync(&at, before / 2, pool, nullptr));
  CODE(CUDA_ERROR_OUT_OF_MEMORY, cuMemAllocFromPoolAsync(&at, before / 2 + (8u << 20), pool, nullptr));
  MUST(cuMemFreeAsync(at, nullptr));
  MUST(cuCtxSynchronize());
  MUST(cuMemAlloc(&at, before - (8u << 20)));
  MUST(cuMemFree(at));
  MUST(cuMemPoolDestroy(pool));
}

void still_works() {
  CUmodule module = nullptr;
  CUfunction store = nullptr;
  MUST(cuModuleLoadData(&module, store_value));
  MUST(cuModuleGetFunction(&store, module, "store"));
  CUdeviceptr at = allocate(64);
  unsigned value = 7;
  void* arguments[] = {&at, &value};
  MUST(cuLaunchKernel(store, 1, 1, 1, 4, 1, 1, 0, nullptr, arguments, nullptr));
  EXPECT(word_at(at + 12) == 7);
  MUST(cuMemFree(at));
  MUST(cuModuleUnload(module));
}

}  // namespace

int main(int count, char** values) {
  if (count < 3) return 2;
  const int devices = count > 3 ? std::atoi(values[3]) : 1;
  total = std::strtoull(values[2], nullptr, 0);
  library = ::dlopen("libnvidia-ml.so.1", RTLD_NOW);
  EXPECT(library != nullptr);
  EXPECT(nvml("nvmlInit_v2") == 0);
  EXPECT(nvml("nvmlDeviceGetHandleByIndex_v2", 0u, &board) == 0);
  begin(0, nullptr);
  names(values[1], devices);
  same_boards(devices);
  still_works();
  every_way();
  mapped_memory();
  kept_by_a_pool();
  still_works();
  both_agree(4u << 20);
  std::printf("PASS shaped_devices\n");
}
