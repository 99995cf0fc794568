// An ordinary program that uses NVML as nvidia-smi and frameworks do: by dlopen and dlsym, with the layouts
// of the library's documents. It lists devices, memory, processes and utilisation, and asks wrong things.
// usage: list DEVICES [--process PID]: there are DEVICES devices; the process PID holds memory on the first.
#include <dlfcn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <thread>
#include <vector>

namespace {

// What is used of nvml.h.
using code = int;
using device = struct opaque_device*;
struct memory_v1 {
  unsigned long long total, free, used;
};
struct memory_v2 {
  unsigned version;
  unsigned long long total, reserved, free, used;
};
struct utilization {
  unsigned gpu, memory;
};
struct process_v1 {
  unsigned pid;
  unsigned long long used;
};
struct process_v3 {
  unsigned pid;
  unsigned long long used;
  unsigned gpu_instance, compute_instance;
};
struct pci_info {
  char legacy[16];
  unsigned domain, bus, device, id, subsystem;
  char bus_id[32];
};
enum : code {
  success = 0,
  uninitialized = 1,
  invalid = 2,
  not_supported = 3,
  no_permission = 4,
  not_found = 6,
  too_small = 7,
  timeout = 10,
  function_not_found = 13,
  version_mismatch = 25
};

void* library;
int failures = 0;

template <class... A>
code call(const char* name, A... arguments) {
  auto* entry = reinterpret_cast<code (*)(A...)>(::dlsym(library, name));
  if (entry) return entry(arguments...);
  std::printf("FAIL: no %s\n", name);
  ++failures;
  return -1;
}

void expect(bool good, const char* what, long long got = 0) {
  if (good) return;
  std::printf("FAIL: %s (%lld)\n", what, got);
  ++failures;
}

void expect_code(code got, code wanted, const char* what) { expect(got == wanted, what, got); }

#define EXPECT_CODE(wanted, ...) expect_code(call(__VA_ARGS__), wanted, #wanted " from " #__VA_ARGS__)

template <class T>
T* null() {
  return nullptr;
}

void before_init() {
  unsigned n = 0;
  EXPECT_CODE(uninitialized, "nvmlShutdown");
  EXPECT_CODE(uninitialized, "nvmlDeviceGetCount_v2", &n);
  EXPECT_CODE(uninitialized, "nvmlDeviceGetCount_v2", null<unsigned>());
  EXPECT_CODE(uninitialized, "nvmlDeviceSetPersistenceMode", null<opaque_device>(), 1);
  auto* text = reinterpret_cast<const char* (*)(code)>(::dlsym(library, "nvmlErrorString"));
  expect(text && std::strcmp(text(uninitialized), "Uninitialized") == 0, "the text of an error");
  expect(text && std::strcmp(text(12345), "Unknown Error") == 0, "the text of no error");
  char version[80];
  EXPECT_CODE(success, "nvmlSystemGetNVMLVersion", version, 80u);
  EXPECT_CODE(uninitialized, "nvmlDeviceGetCount_v2", &n);
}

void find_again(device handle, unsigned index) {
  char name[96] = "", uuid[96] = "", small[4];
  EXPECT_CODE(success, "nvmlDeviceGetName", handle, name, 96u);
  EXPECT_CODE(success, "nvmlDeviceGetUUID", handle, uuid, 96u);
  pci_info pci{};
  EXPECT_CODE(success, "nvmlDeviceGetPciInfo_v3", handle, &pci);
  std::printf("device %u: %s %s %s\n", index, name, uuid, pci.bus_id);
  expect(std::strncmp(uuid, "GPU-", 4) == 0 && std::strlen(uuid) == 40, "a UUID");
  expect(std::strcmp(pci.bus_id + 4, pci.legacy) == 0, "both forms of a PCI address");
  EXPECT_CODE(too_small, "nvmlDeviceGetName", handle, small, 4u);
  unsigned again = ~0u;
  EXPECT_CODE(success, "nvmlDeviceGetIndex", handle, &again);
  expect(again == index, "the index", again);
  device same = nullptr;
  EXPECT_CODE(success, "nvmlDeviceGetHandleByUUID", static_cast<const char*>(uuid), &same);
  expect(same == handle, "the handle by UUID");
  EXPECT_CODE(success, "nvmlDeviceGetHandleByUUID", static_cast<const char*>(uuid + 4), &same);
  EXPECT_CODE(success, "nvmlDeviceGetHandleByPciBusId_v2", static_cast<const char*>(pci.bus_id), &same);
  expect(same == handle, "the handle by PCI address");
  EXPECT_CODE(success, "nvmlDeviceGetHandleByPciBusId", static_cast<const char*>(pci.legacy), &same);
  uuid[12] ^= 1;
  EXPECT_CODE(not_found, "nvmlDeviceGetHandleByUUID", static_cast<const char*>(uuid), &same);
}

void look_at_memory(device handle, unsigned index) {
  memory_v1 v1{};
  memory_v2 v2{};
  EXPECT_CODE(success, "nvmlDeviceGetMemoryInfo", handle, &v1);
  EXPECT_CODE(version_mismatch, "nvmlDeviceGetMemoryInfo_v2", handle, &v2);
  v2.version = sizeof v2 | 7u << 24;
  // A real driver returns "function not found" for a version that it does not know.
  const code unknown = call("nvmlDeviceGetMemoryInfo_v2", handle, &v2);
  expect(unknown == version_mismatch || unknown == function_not_found, "memory of an unknown version",
         unknown);
  v2.version = ~0u;
  EXPECT_CODE(version_mismatch, "nvmlDeviceGetMemoryInfo_v2", handle, &v2);
  v2.version = sizeof v2 | 2u << 24;
  EXPECT_CODE(success, "nvmlDeviceGetMemoryInfo_v2", handle, &v2);
  expect(v1.total > 0 && v1.total == v2.total, "total memory", static_cast<long long>(v1.total));
  expect(v2.free + v2.used + v2.reserved == v2.total, "memory in use and free");
  utilization busy{999, 999};
  EXPECT_CODE(success, "nvmlDeviceGetUtilizationRates", handle, &busy);
  expect(busy.gpu <= 100 && busy.memory <= 100, "utilisation", busy.gpu);
  std::printf("device %u: %llu MiB, %llu MiB used, %u %%\n", index, v1.total >> 20, v1.used >> 20, busy.gpu);
}

std::vector<process_v3> processes(device handle) {
  unsigned count = 0;
  code got = call("nvmlDeviceGetComputeRunningProcesses_v3", handle, &count, null<process_v3>());
  expect(got == (count == 0 ? success : too_small), "the number of processes", got);
  std::vector<process_v3> list(count + 16);
  count = static_cast<unsigned>(list.size());
  EXPECT_CODE(success, "nvmlDeviceGetComputeRunningProcesses_v3", handle, &count, list.data());
  list.resize(count);
  // The first version of the function has smaller structs: nothing may be written behind them.
  std::vector<process_v1> old(count + 1);
  old[count] = {0x5a5a5a5a, 0x5a5a5a5a5a5a5a5a};
  unsigned room = count;
  if (count > 0) EXPECT_CODE(success, "nvmlDeviceGetComputeRunningProcesses", handle, &room, old.data());
  for (unsigned i = 0; i < room; ++i)
    expect(old[i].pid == list[i].pid, "a process in both lists", old[i].pid);
  expect(old[count].pid == 0x5a5a5a5a && old[count].used == 0x5a5a5a5a5a5a5a5a, "memory behind a list");
  return list;
}

void look_at_processes(device handle, unsigned wanted) {
  const auto list = processes(handle);
  for (const process_v3& p : list) std::printf("process %u: %llu bytes\n", p.pid, p.used);
  if (wanted == 0) return expect(list.empty(), "no processes", static_cast<long long>(list.size()));
  expect(list.size() == 1 && list[0].pid == wanted && list[0].used > 0, "the one process, by our own number",
         static_cast<long long>(list.size()));
  char name[256] = "";
  EXPECT_CODE(success, "nvmlSystemGetProcessName", wanted, name, 256u);
  std::printf("process %u is %s\n", wanted, name);
  EXPECT_CODE(not_found, "nvmlSystemGetProcessName", 0x7ffffff0u, name, 256u);
  memory_v1 memory{};
  EXPECT_CODE(success, "nvmlDeviceGetMemoryInfo", handle, &memory);
  if (!list.empty()) expect(memory.used >= list[0].used, "memory in use covers the process");
}

void wrong_things(device handle, unsigned devices) {
  device other = nullptr;
  unsigned value = 0;
  char text[96];
  EXPECT_CODE(invalid, "nvmlDeviceGetHandleByIndex_v2", devices, &other);
  EXPECT_CODE(invalid, "nvmlDeviceGetHandleByIndex", ~0u, &other);
  EXPECT_CODE(invalid, "nvmlDeviceGetHandleByIndex_v2", 0u, null<device>());
  EXPECT_CODE(invalid, "nvmlDeviceGetName", null<opaque_device>(), text, 96u);
  EXPECT_CODE(invalid, "nvmlDeviceGetName", reinterpret_cast<device>(0x1234560), text, 96u);
  EXPECT_CODE(invalid, "nvmlDeviceGetName", reinterpret_cast<device>(&value), text, 96u);
  EXPECT_CODE(invalid, "nvmlDeviceGetName", handle, null<char>(), 96u);
  EXPECT_CODE(invalid, "nvmlDeviceGetHandleByUUID", null<const char>(), &other);
  EXPECT_CODE(not_found, "nvmlDeviceGetHandleByUUID", "", &other);
  EXPECT_CODE(not_found, "nvmlDeviceGetHandleBySerial", "nobody's", &other);
  EXPECT_CODE(invalid, "nvmlDeviceGetHandleByPciBusId_v2", "zz", &other);
  EXPECT_CODE(invalid, "nvmlDeviceGetHandleByPciBusId_v2", "", &other);
  EXPECT_CODE(not_found, "nvmlDeviceGetHandleByPciBusId_v2", "0000:77:1f.0", &other);
  EXPECT_CODE(invalid, "nvmlDeviceGetMemoryInfo_v2", handle, null<memory_v2>());
  EXPECT_CODE(no_permission, "nvmlDeviceSetPersistenceMode", handle, 1);
  EXPECT_CODE(no_permission, "nvmlDeviceSetPowerManagementLimit", handle, 100000u);
  EXPECT_CODE(no_permission, "nvmlDeviceSetMigMode", handle, 1u, &value);
  EXPECT_CODE(invalid, "nvmlDeviceSetEccMode", null<opaque_device>(), 1);
  EXPECT_CODE(invalid, "nvmlEventSetFree", reinterpret_cast<void*>(0x4e4d050000000010));
  EXPECT_CODE(no_permission, "nvmlSystemGetCPER_v1", text);
  EXPECT_CODE(invalid, "nvmlDeviceGetMemoryLimits_v1", null<opaque_device>(), text);
  EXPECT_CODE(not_supported, "nvmlDeviceGetMemoryLimits_v1", handle, text);
  expect(!::dlsym(library, "nvmlDeviceGetNothing"), "a function that NVML does not have has no symbol");
}

/// All threads ask at once; answers must not be mixed up.
void many_threads(device handle) {
  char wanted[96] = "";
  EXPECT_CODE(success, "nvmlDeviceGetUUID", handle, wanted, 96u);
  std::vector<std::thread> threads;
  for (int t = 0; t < 8; ++t) {
    threads.emplace_back([&, t] {
      for (int i = 0; i < 200; ++i) {
        memory_v1 memory{};
        char uuid[96] = "";
        unsigned count = 0;
        EXPECT_CODE(success, "nvmlDeviceGetMemoryInfo", handle, &memory);
        EXPECT_CODE(success, "nvmlDeviceGetUUID", handle, uuid, 90u + static_cast<unsigned>(t));
        EXPECT_CODE(success, "nvmlDeviceGetCount_v2", &count);
        expect(memory.total > 0 && std::strcmp(uuid, wanted) == 0, "what a thread was told");
      }
    });
  }
  for (std::thread& t : threads) t.join();
}

/// A child's NVML is not initialised. The child may initialise it, and its end does not affect the parent.
void fork_a_child(device handle) {
  std::fflush(stdout);
  const pid_t child = ::fork();
  if (child == 0) {
    failures = 0;
    unsigned count = 0;
    EXPECT_CODE(uninitialized, "nvmlDeviceGetCount_v2", &count);
    EXPECT_CODE(success, "nvmlInit_v2");
    EXPECT_CODE(success, "nvmlDeviceGetCount_v2", &count);
    expect(count > 0, "devices of a child");
    std::fflush(stdout);
    std::exit(failures == 0 ? 0 : 1);
  }
  int status = -1;
  ::waitpid(child, &status, 0);
  expect(status == 0, "a child", status);
  memory_v1 memory{};
  EXPECT_CODE(success, "nvmlDeviceGetMemoryInfo", handle, &memory);
}

}  // namespace

int main(int argc, char** argv) {
  const unsigned devices = argc > 1 ? static_cast<unsigned>(std::atoi(argv[1])) : 1;
  const unsigned process = argc > 3 ? static_cast<unsigned>(std::atoi(argv[3])) : 0;
  library = ::dlopen("libnvidia-ml.so.1", RTLD_NOW);
  if (!library) return std::printf("FAIL: %s\n", ::dlerror()), 1;
  before_init();
  EXPECT_CODE(success, "nvmlInit_v2");
  EXPECT_CODE(success, "nvmlInit");
  EXPECT_CODE(success, "nvmlShutdown");  // counted: still initialised
  unsigned count = 0;
  EXPECT_CODE(success, "nvmlDeviceGetCount_v2", &count);
  expect(count == devices, "the number of devices", count);
  device first = nullptr;
  for (unsigned i = 0; i < count; ++i) {
    device handle = nullptr;
    EXPECT_CODE(success, "nvmlDeviceGetHandleByIndex_v2", i, &handle);
    if (i == 0) first = handle;
    find_again(handle, i);
    look_at_memory(handle, i);
  }
  look_at_processes(first, process);
  wrong_things(first, devices);
  many_threads(first);
  fork_a_child(first);
  EXPECT_CODE(success, "nvmlShutdown");
  EXPECT_CODE(uninitialized, "nvmlShutdown");
  EXPECT_CODE(uninitialized, "nvmlDeviceGetCount_v2", &count);
  EXPECT_CODE(success, "nvmlInitWithFlags", 0u);
  EXPECT_CODE(success, "nvmlDeviceGetCount", &count);
  std::printf(failures == 0 ? "PASSED\n" : "%d failures\n", failures);
  return failures == 0 ? 0 : 1;
}
