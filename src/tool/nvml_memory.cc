#include "tool/nvml_memory.hh"

#include <dlfcn.h>

#include "device/vendor/vendor.hh"

namespace outboard::tool {
namespace {

// The few functions of nvml.h that are used, by their binary interface, which NVML keeps for versioned names.
struct memory_info {
  unsigned long long total, free, used;
};
using no_arguments = int (*)();
using find_device = int (*)(const char* pci_bus_id, void** device);
using get_memory = int (*)(void* device, memory_info* memory);

/// Loads the NVML that lies next to the vendor's driver library, never ours. It stays loaded, because it
/// keeps state.
void* open_library() {
  for (const std::string& driver : device::vendor::candidates()) {
    const std::string path = driver.substr(0, driver.rfind('/') + 1) + "libnvidia-ml.so.1";
    void* library = ::dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
    if (!library) continue;
    if (!::dlsym(library, device::vendor::frontend_marker)) return library;
    ::dlclose(library);
  }
  return nullptr;
}

template <class Entry>
Entry entry(void* library, const char* name) {
  return reinterpret_cast<Entry>(::dlsym(library, name));
}

}  // namespace

std::optional<std::uint64_t> nvml_free_memory(const std::string& pci_bus_id) {
  static void* const library = open_library();
  if (!library) return std::nullopt;
  const auto init = entry<no_arguments>(library, "nvmlInit_v2");
  const auto find = entry<find_device>(library, "nvmlDeviceGetHandleByPciBusId_v2");
  const auto memory = entry<get_memory>(library, "nvmlDeviceGetMemoryInfo");
  const auto shutdown = entry<no_arguments>(library, "nvmlShutdown");
  if (!init || !find || !memory || !shutdown || init() != 0) return std::nullopt;
  void* device = nullptr;
  memory_info info{};
  const bool good = find(pci_bus_id.c_str(), &device) == 0 && memory(device, &info) == 0;
  shutdown();
  return good ? std::optional<std::uint64_t>(info.free) : std::nullopt;
}

}  // namespace outboard::tool
