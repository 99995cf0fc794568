// Entries of the chapters initialization and device, and the loading mode.
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <span>
#include <string>
#include <string_view>

#include "api/cuda/visible_devices.hh"
#include "device/cpu/machine.hh"

namespace outboard::device::cpu {
namespace {

std::string own_uuid() {
  std::string uuid = "GPU-";
  for (std::size_t i = 0; i < here().facts.uuid.size(); ++i) {
    char digits[4];
    const bool dash = i == 4 || i == 6 || i == 8 || i == 10;
    std::snprintf(digits, sizeof digits, dash ? "-%02x" : "%02x",
                  std::to_integer<unsigned>(here().facts.uuid[i]));
    uuid += digits;
  }
  return uuid;
}

CUresult look_at_visible_devices() {
  const char* list = std::getenv("CUDA_VISIBLE_DEVICES");
  if (list == nullptr) return CUDA_SUCCESS;
  const std::string uuid = own_uuid();
  const api::visible_devices visible = api::read_visible_devices(list, std::span(&uuid, 1));
  if (visible.twice) return CUDA_ERROR_INVALID_DEVICE;
  return visible.ordinals.empty() ? CUDA_ERROR_NO_DEVICE : CUDA_SUCCESS;
}

CUresult init(unsigned flags) {
  if (flags != 0) return CUDA_ERROR_INVALID_VALUE;
  if (const CUresult code = look_at_visible_devices(); code != CUDA_SUCCESS) return code;
  here().initialised.store(true, std::memory_order_release);
  return CUDA_SUCCESS;
}

CUresult driver_get_version(int* version) {
  if (version == nullptr) return CUDA_ERROR_INVALID_VALUE;
  return *version = profile::driver_version, CUDA_SUCCESS;
}

/// Calls body() for device 0 after cuInit; outputs must not be null.
template <class Body, class... Out>
CUresult of_device(CUdevice device, Body&& body, Out*... outputs) {
  return after_init([&]() -> CUresult {
    if ((!outputs || ...)) return CUDA_ERROR_INVALID_VALUE;
    if (device != 0) return CUDA_ERROR_INVALID_DEVICE;
    return body();
  });
}

CUresult device_get_count(int* count) {
  return of_device(
      0, [&] { return *count = 1, CUDA_SUCCESS; }, count);
}

CUresult device_get(CUdevice* device, int ordinal) {
  return of_device(
      ordinal, [&] { return *device = 0, CUDA_SUCCESS; }, device);
}

CUresult put_text(char* out, int room, const char* text) {
  if (room <= 0) return CUDA_ERROR_INVALID_VALUE;
  std::snprintf(out, static_cast<std::size_t>(room), "%s", text);
  return CUDA_SUCCESS;
}

CUresult device_get_name(char* name, int room, CUdevice device) {
  return of_device(
      device, [&] { return put_text(name, room, profile::name); }, name);
}

CUresult device_get_uuid(CUuuid* uuid, CUdevice device) {
  return of_device(
      device, [&] { return std::memcpy(uuid->bytes, here().facts.uuid.data(), 16), CUDA_SUCCESS; }, uuid);
}

CUresult device_total_memory(std::size_t* bytes, CUdevice device) {
  return of_device(
      device, [&] { return *bytes = here().store->total(), CUDA_SUCCESS; }, bytes);
}

CUresult device_get_attribute(int* value, CUdevice_attribute id, CUdevice device) {
  return of_device(
      device,
      [&]() -> CUresult {
        const auto answer = here().facts.attribute(id);
        if (!answer) return CUDA_ERROR_INVALID_VALUE;
        return *value = *answer, CUDA_SUCCESS;
      },
      value);
}

CUresult device_get_pci_bus_id(char* text, int room, CUdevice device) {
  return of_device(
      device, [&] { return put_text(text, room, profile::pci_bus_id); }, text);
}

CUresult device_get_by_pci_bus_id(CUdevice* device, const char* text) {
  return of_device(
      0,
      [&]() -> CUresult {
        unsigned domain = 0, bus = 0, slot = 0;
        if (std::sscanf(text, "%x:%x:%x", &domain, &bus, &slot) != 3) return CUDA_ERROR_INVALID_VALUE;
        const bool ours =
            domain == profile::pci_domain && bus == profile::pci_bus && slot == profile::pci_device;
        if (!ours) return CUDA_ERROR_INVALID_DEVICE;
        return *device = 0, CUDA_SUCCESS;
      },
      device, text);
}

CUresult compute_capability(int* major, int* minor, CUdevice device) {
  return of_device(
      device,
      [&] {
        *major = here().facts.capability / 10;
        return *minor = here().facts.capability % 10, CUDA_SUCCESS;
      },
      major, minor);
}

CUresult device_get_properties(CUdevprop* out, CUdevice device) {
  return of_device(
      device,
      [&] {
        const profile& p = here().facts;
        const auto value = [&](CUdevice_attribute id) { return p.attribute(id).value(); };
        *out = {};
        out->maxThreadsPerBlock = value(CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_BLOCK);
        for (int i = 0; i < 3; ++i) {
          out->maxThreadsDim[i] =
              static_cast<int>(ptx::executor_limits::max_block[static_cast<std::size_t>(i)]);
          out->maxGridSize[i] = static_cast<int>(ptx::executor_limits::max_grid[static_cast<std::size_t>(i)]);
        }
        out->sharedMemPerBlock = profile::shared_per_block;
        out->totalConstantMemory = value(CU_DEVICE_ATTRIBUTE_TOTAL_CONSTANT_MEMORY);
        out->SIMDWidth = value(CU_DEVICE_ATTRIBUTE_WARP_SIZE);
        out->memPitch = value(CU_DEVICE_ATTRIBUTE_MAX_PITCH);
        out->regsPerBlock = value(CU_DEVICE_ATTRIBUTE_MAX_REGISTERS_PER_BLOCK);
        out->clockRate = value(CU_DEVICE_ATTRIBUTE_CLOCK_RATE);
        out->textureAlign = value(CU_DEVICE_ATTRIBUTE_TEXTURE_ALIGNMENT);
        return CUDA_SUCCESS;
      },
      out);
}

CUresult can_access_peer(int* can, CUdevice device, CUdevice peer) {
  return of_device(
      device,
      [&]() -> CUresult {
        if (peer != 0) return CUDA_ERROR_INVALID_DEVICE;
        return *can = 0, CUDA_SUCCESS;  // a device is not its own peer
      },
      can);
}

/// All code is compiled when it is loaded; the answer is the driver's, which follows the variable.
CUresult get_loading_mode(CUmoduleLoadingMode* mode) {
  const auto wanted = [] {
    const char* said = std::getenv("CUDA_MODULE_LOADING");
    return said && std::string_view(said) == "EAGER" ? CU_MODULE_EAGER_LOADING : CU_MODULE_LAZY_LOADING;
  };
  return of_device(
      0, [&] { return *mode = wanted(), CUDA_SUCCESS; }, mode);
}

CUresult profiler_switch() {
  return with_context([](context&, const context_ptr&) { return CUDA_SUCCESS; });
}

}  // namespace

void fill_device_entries(api::driver_table& t) {
  t.cuInit = init;
  t.cuDriverGetVersion = driver_get_version;
  t.cuDeviceGetCount = device_get_count;
  t.cuDeviceGet = device_get;
  t.cuDeviceGetName = device_get_name;
  t.cuDeviceGetUuid = t.cuDeviceGetUuid_v2 = device_get_uuid;
  t.cuDeviceTotalMem_v2 = device_total_memory;
  t.cuDeviceGetAttribute = device_get_attribute;
  t.cuDeviceGetPCIBusId = device_get_pci_bus_id;
  t.cuDeviceGetByPCIBusId = device_get_by_pci_bus_id;
  t.cuDeviceComputeCapability = compute_capability;
  t.cuDeviceGetProperties = device_get_properties;
  t.cuDeviceCanAccessPeer = can_access_peer;
  t.cuModuleGetLoadingMode = get_loading_mode;
  t.cuProfilerStart = t.cuProfilerStop = profiler_switch;
}

}  // namespace outboard::device::cpu
