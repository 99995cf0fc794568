#include "marshal/cuda/snapshot.hh"

#include <cstring>

namespace outboard::marshal {
namespace {

std::string name_of(CUresult code) { return "error " + std::to_string(static_cast<int>(code)); }

/// Attribute ids that the driver may know beyond our header: asked too, so that a newer program finds them.
constexpr int attributes_asked = 192;

void take_attributes(const api::driver_table& driver, CUdevice device, device_facts& facts) {
  facts.attributes.resize(attributes_asked);
  for (int id = 0; id < attributes_asked; ++id) {
    int value = 0;
    const CUresult code = driver.cuDeviceGetAttribute(&value, static_cast<CUdevice_attribute>(id), device);
    facts.attributes[static_cast<std::size_t>(id)] = {code, code == CUDA_SUCCESS ? value : 0};
  }
  facts.compute_major = facts.attributes[CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR].value;
  facts.compute_minor = facts.attributes[CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR].value;
}

void take_context_facts(const api::driver_table& driver, CUdevice device, device_facts& facts) {
  CUcontext context = nullptr;
  if (driver.cuDevicePrimaryCtxRetain(&context, device) != CUDA_SUCCESS) return;
  if (driver.cuCtxPushCurrent_v2(context) == CUDA_SUCCESS) {
    for (std::size_t limit = 0; limit < facts.limits.size(); ++limit) {
      std::size_t value = 0;
      if (driver.cuCtxGetLimit && driver.cuCtxGetLimit(&value, static_cast<CUlimit>(limit)) == CUDA_SUCCESS) {
        facts.limits[limit] = value;
      }
    }
    if (driver.cuCtxGetStreamPriorityRange) {
      driver.cuCtxGetStreamPriorityRange(&facts.least_priority, &facts.greatest_priority);
    }
    CUcontext popped = nullptr;
    driver.cuCtxPopCurrent_v2(&popped);
  }
  driver.cuDevicePrimaryCtxRelease_v2(device);
}

void copy_context_facts(const device_facts& from, device_facts& to) {
  to.limits = from.limits;
  to.least_priority = from.least_priority;
  to.greatest_priority = from.greatest_priority;
}

result<device_facts> take_device(const api::driver_table& driver, int ordinal, bool with_context) {
  device_facts facts;
  CUdevice device = 0;
  if (CUresult code = driver.cuDeviceGet(&device, ordinal); code != CUDA_SUCCESS) {
    return failure("cuDeviceGet(" + std::to_string(ordinal) + ") gives " + name_of(code));
  }
  char text[256] = "";
  if (driver.cuDeviceGetName(text, sizeof text, device) == CUDA_SUCCESS) facts.name = text;
  CUuuid uuid{};
  if (driver.cuDeviceGetUuid && driver.cuDeviceGetUuid(&uuid, device) == CUDA_SUCCESS) {
    std::memcpy(facts.uuid.data(), &uuid, sizeof uuid);
  }
  facts.uuid_v2 = facts.uuid;
  if (driver.cuDeviceGetUuid_v2 && driver.cuDeviceGetUuid_v2(&uuid, device) == CUDA_SUCCESS) {
    std::memcpy(facts.uuid_v2.data(), &uuid, sizeof uuid);
  }
  if (driver.cuDeviceGetPCIBusId && driver.cuDeviceGetPCIBusId(text, 32, device) == CUDA_SUCCESS)
    facts.pci_bus_id = text;
  std::size_t total = 0;
  if (driver.cuDeviceTotalMem_v2(&total, device) == CUDA_SUCCESS) facts.total_memory = total;
  facts.limits.fill(~0ull);
  take_attributes(driver, device, facts);
  if (with_context) take_context_facts(driver, device, facts);
  return facts;
}

}  // namespace

result<snapshot> take_snapshot(const api::driver_table& driver, bool with_contexts) {
  snapshot s;
  if (CUresult code = driver.cuDriverGetVersion(&s.driver_version); code != CUDA_SUCCESS) {
    return failure("cuDriverGetVersion gives " + name_of(code));
  }
  CUmoduleLoadingMode mode{};
  if (driver.cuModuleGetLoadingMode && driver.cuModuleGetLoadingMode(&mode) == CUDA_SUCCESS)
    s.loading_mode = mode;
  int count = 0;
  if (CUresult code = driver.cuDeviceGetCount(&count); code != CUDA_SUCCESS) {
    return failure("cuDeviceGetCount gives " + name_of(code));
  }
  for (int ordinal = 0; ordinal < count; ++ordinal) {
    // One context is dear, one on each of eight devices more so; a fresh context's limits do not differ
    // between them.
    auto facts = take_device(driver, ordinal, with_contexts && ordinal == 0);
    if (!facts) return std::move(facts).error();
    if (with_contexts && ordinal > 0) copy_context_facts(s.devices.front(), *facts);
    s.devices.push_back(std::move(facts).value());
  }
  return s;
}

}  // namespace outboard::marshal
