#include "device/cpu/nvml.hh"

#include <sched.h>

#include <algorithm>
#include <atomic>
#include <cstdio>
#include <cstring>

#include "base/version.hh"
#include "device/cpu/busy.hh"
#include "device/cpu/profile_of.hh"

namespace outboard::device::cpu {
namespace {

using namespace api::nvml;

struct board {
  board(profile p, activity_source source)
      : facts(std::move(p)), workers(std::move(source)), busy(facts.cores, workers) {}
  const profile facts;
  const activity_source workers;
  const busy_meter busy;
};

/// Entries carry no pointer to their device.
std::atomic<board*> the_board{nullptr};
board& here() { return *the_board.load(std::memory_order_acquire); }

nvmlDevice_t handle() { return reinterpret_cast<nvmlDevice_t>(&the_board); }

nvmlReturn_t give_text(const std::string& text, char* to, unsigned size) {
  if (text.size() >= size) return NVML_ERROR_INSUFFICIENT_SIZE;
  std::memcpy(to, text.c_str(), text.size() + 1);
  return NVML_SUCCESS;
}

template <class T, class V>
nvmlReturn_t give(T* to, V value) {
  *to = static_cast<T>(value);
  return NVML_SUCCESS;
}

std::string uuid_text() {
  std::string text = "GPU-";
  const auto& uuid = here().facts.uuid;
  for (std::size_t i = 0; i < uuid.size(); ++i) {
    char byte[4];
    std::snprintf(byte, sizeof byte, "%02x", std::to_integer<unsigned>(uuid[i]));
    text.append(i == 4 || i == 6 || i == 8 || i == 10 ? "-" : "").append(byte);
  }
  return text;
}

/// NVML's own numbers (NVML_DEVICE_ARCH_*).
unsigned architecture(int capability) {
  if (capability < 60) return 3;
  if (capability < 70) return 4;
  if (capability < 75) return 5;
  if (capability < 80) return 6;
  if (capability < 89) return 7;
  if (capability < 90) return 8;
  return capability < 100 ? 9 : 10;
}

u64 bytes_in_use() {
  u64 sum = 0;
  for (const worker_activity& w : here().workers()) sum += w.device_bytes;
  return std::min<u64>(sum, here().facts.memory_bytes);
}

nvmlReturn_t memory_info(nvmlDevice_t, nvmlMemory_t* out) {
  const u64 total = here().facts.memory_bytes, used = bytes_in_use();
  *out = {total, total - used, used};
  return NVML_SUCCESS;
}

nvmlReturn_t memory_info_v2(nvmlDevice_t, nvmlMemory_v2_t* out) {
  if (out->version != version_of<nvmlMemory_v2_t>(2)) return NVML_ERROR_ARGUMENT_VERSION_MISMATCH;
  const u64 total = here().facts.memory_bytes, used = bytes_in_use();
  *out = {out->version, total, 0, total - used, used};
  return NVML_SUCCESS;
}

template <class Info>
void fill_address(Info& out) {
  out.domain = profile::pci_domain;
  out.bus = profile::pci_bus;
  out.device = profile::pci_device;
}

nvmlReturn_t pci_info(nvmlDevice_t, nvmlPciInfo_t* out) {
  *out = {};
  fill_address(*out);
  std::snprintf(out->busIdLegacy, sizeof out->busIdLegacy, "%s", profile::pci_bus_id);
  std::snprintf(out->busId, sizeof out->busId, "0000%s", profile::pci_bus_id);
  return NVML_SUCCESS;
}

template <class Old>
nvmlReturn_t old_pci_info(nvmlDevice_t, Old* out) {
  *out = {};
  fill_address(*out);
  std::snprintf(out->busId, sizeof out->busId, "%s", profile::pci_bus_id);
  return NVML_SUCCESS;
}

nvmlReturn_t pci_info_ext(nvmlDevice_t, nvmlPciInfoExt_v1_t* out) {
  if (out->version != version_of<nvmlPciInfoExt_v1_t>(1)) return NVML_ERROR_ARGUMENT_VERSION_MISMATCH;
  const unsigned said = out->version;
  *out = {};
  out->version = said;
  fill_address(*out);
  std::snprintf(out->busId, sizeof out->busId, "0000%s", profile::pci_bus_id);
  return NVML_SUCCESS;
}

nvmlReturn_t cpu_affinity(nvmlDevice_t, unsigned size, unsigned long* set) {
  cpu_set_t own;
  if (::sched_getaffinity(0, sizeof own, &own) != 0) return NVML_ERROR_UNKNOWN;
  std::memset(set, 0, size * sizeof *set);
  constexpr unsigned bits = 8 * sizeof *set;
  for (unsigned cpu = 0; cpu < size * bits && cpu < CPU_SETSIZE; ++cpu) {
    if (CPU_ISSET(cpu, &own)) set[cpu / bits] |= 1ul << cpu % bits;
  }
  return NVML_SUCCESS;
}

/// What the board is.
void fill_identity(function_table& t) {
  t.nvmlDeviceGetCount = t.nvmlDeviceGetCount_v2 = [](unsigned* n) { return give(n, 1); };
  t.nvmlDeviceGetHandleByIndex = t.nvmlDeviceGetHandleByIndex_v2 = [](unsigned index, nvmlDevice_t* out) {
    return index == 0 ? (*out = handle(), NVML_SUCCESS) : NVML_ERROR_INVALID_ARGUMENT;
  };
  t.nvmlSystemGetDriverVersion = [](char* to, unsigned size) {
    return give_text(std::string(version), to, size);
  };
  t.nvmlSystemGetNVMLVersion = [](char* to, unsigned size) {
    return give_text(std::to_string(profile::driver_version / 1000) + "." + std::string(version), to, size);
  };
  t.nvmlSystemGetCudaDriverVersion =
      t.nvmlSystemGetCudaDriverVersion_v2 = [](int* out) { return give(out, profile::driver_version); };
  t.nvmlDeviceGetName = [](nvmlDevice_t, char* to, unsigned size) {
    return give_text(profile::name, to, size);
  };
  t.nvmlDeviceGetUUID = [](nvmlDevice_t, char* to, unsigned size) {
    return give_text(uuid_text(), to, size);
  };
  t.nvmlDeviceGetBrand = [](nvmlDevice_t, int* out) { return give(out, 0); };
  t.nvmlDeviceGetIndex = [](nvmlDevice_t, unsigned* out) { return give(out, 0); };
  t.nvmlDeviceGetMinorNumber = [](nvmlDevice_t, unsigned* out) { return give(out, 0); };
  t.nvmlDeviceGetArchitecture = [](nvmlDevice_t, unsigned* out) {
    return give(out, architecture(here().facts.capability));
  };
  t.nvmlDeviceGetCudaComputeCapability = [](nvmlDevice_t, int* major, int* minor) {
    *major = here().facts.capability / 10;
    *minor = here().facts.capability % 10;
    return NVML_SUCCESS;
  };
  t.nvmlDeviceGetComputeMode = [](nvmlDevice_t, int* out) { return give(out, 0); };
  t.nvmlDeviceGetMultiGpuBoard = [](nvmlDevice_t, unsigned* out) { return give(out, 0); };
  t.nvmlDeviceIsMigDeviceHandle = [](nvmlDevice_t, unsigned* out) { return give(out, 0); };
  t.nvmlDeviceGetMaxMigDeviceCount = [](nvmlDevice_t, unsigned* out) { return give(out, 0); };
  t.nvmlDeviceGetVirtualizationMode = [](nvmlDevice_t, int* out) { return give(out, 0); };
}

function_table make_table() {
  function_table t;
  fill_identity(t);
  t.nvmlDeviceGetPciInfo_v3 = pci_info;
  t.nvmlDeviceGetPciInfo_v2 = old_pci_info<nvmlPciInfo_v2_t>;
  t.nvmlDeviceGetPciInfo = old_pci_info<nvmlPciInfo_v1_t>;
  t.nvmlDeviceGetPciInfoExt = pci_info_ext;
  t.nvmlDeviceGetMemoryInfo = memory_info;
  t.nvmlDeviceGetMemoryInfo_v2 = memory_info_v2;
  t.nvmlDeviceGetCpuAffinity = cpu_affinity;
  // The share of time in which memory was read or written is not measured here.
  t.nvmlDeviceGetUtilizationRates = [](nvmlDevice_t, nvmlUtilization_t* out) {
    *out = {here().busy.percent(), 0};
    return NVML_SUCCESS;
  };
  t.nvmlDeviceGetSupportedEventTypes = [](nvmlDevice_t, u64* out) { return give(out, 0); };
  return t;
}

class cpu_nvml final : public nvml_device {
 public:
  explicit cpu_nvml(std::unique_ptr<board> b) : board_(std::move(b)), table_(make_table()) {}
  ~cpu_nvml() override { the_board.store(nullptr); }

  std::string_view kind() const override { return "cpu"; }
  std::string describe() const override { return "the cpu device's own NVML"; }
  const function_table& nvml() const override { return table_; }
  nvmlReturn_t absent() const override { return NVML_ERROR_NOT_SUPPORTED; }

 private:
  std::unique_ptr<board> board_;
  function_table table_;
};

}  // namespace

result<std::unique_ptr<nvml_device>> open_nvml(const options& how, activity_source workers) {
  auto b = std::make_unique<board>(profile_of(how), std::move(workers));
  board* none = nullptr;
  if (!the_board.compare_exchange_strong(none, b.get()))
    return failure("another NVML of the cpu device is open");
  return std::unique_ptr<nvml_device>(std::make_unique<cpu_nvml>(std::move(b)));
}

}  // namespace outboard::device::cpu
