// Lists the name and UUID of each device, through NVML as nvidia-smi -L does, or (with the argument cuda)
// through the driver library. For bench/listing.
#include <dlfcn.h>

#include <cstdio>
#include <cstring>

namespace {

template <class F>
F* symbol(void* library, const char* name) {
  auto* found = reinterpret_cast<F*>(dlsym(library, name));
  if (!found) std::printf("no %s\n", name);
  return found;
}

bool by_nvml() {
  void* library = dlopen("libnvidia-ml.so.1", RTLD_NOW);
  if (!library) return false;
  unsigned count = 0;
  if (symbol<int()>(library, "nvmlInit_v2")() != 0) return false;
  if (symbol<int(unsigned*)>(library, "nvmlDeviceGetCount_v2")(&count) != 0) return false;
  for (unsigned i = 0; i < count; ++i) {
    void* device = nullptr;
    char name[96] = "", uuid[96] = "";
    if (symbol<int(unsigned, void**)>(library, "nvmlDeviceGetHandleByIndex_v2")(i, &device) != 0)
      return false;
    if (symbol<int(void*, char*, unsigned)>(library, "nvmlDeviceGetName")(device, name, sizeof name) != 0)
      return false;
    if (symbol<int(void*, char*, unsigned)>(library, "nvmlDeviceGetUUID")(device, uuid, sizeof uuid) != 0)
      return false;
    std::printf("GPU %u: %s (UUID: %s)\n", i, name, uuid);
  }
  return symbol<int()>(library, "nvmlShutdown")() == 0;
}

bool by_driver() {
  void* library = dlopen("libcuda.so.1", RTLD_NOW);
  if (!library) return false;
  int count = 0;
  if (symbol<int(unsigned)>(library, "cuInit")(0) != 0) return false;
  if (symbol<int(int*)>(library, "cuDeviceGetCount")(&count) != 0) return false;
  for (int i = 0; i < count; ++i) {
    int device = 0;
    char name[96] = "";
    unsigned char uuid[16] = {};
    if (symbol<int(int*, int)>(library, "cuDeviceGet")(&device, i) != 0) return false;
    if (symbol<int(char*, int, int)>(library, "cuDeviceGetName")(name, sizeof name, device) != 0)
      return false;
    if (symbol<int(unsigned char*, int)>(library, "cuDeviceGetUuid")(uuid, device) != 0) return false;
    std::printf("GPU %d: %s (UUID: GPU-%02x%02x...)\n", i, name, uuid[0], uuid[1]);
  }
  return true;
}

}  // namespace

int main(int argc, char** argv) {
  const bool driver = argc > 1 && std::strcmp(argv[1], "cuda") == 0;
  if (driver ? by_driver() : by_nvml()) return 0;
  std::printf("FAIL: %s\n", dlerror());
  return 1;
}
