#include <algorithm>
#include <array>
#include <cstring>
#include <span>
#include <string>

#include "backend/nvml/shield.hh"
#include "base/hex.hh"

namespace outboard::backend::nvml {
namespace {

using namespace api::nvml;

/// More boards than any host has; limits the lists of a topology question.
constexpr unsigned most_devices = 256;

nvmlReturn_t get_count(unsigned* count) {
  *count = static_cast<unsigned>(current_visitor().devices().size());
  return NVML_SUCCESS;
}

nvmlReturn_t by_index(unsigned index, nvmlDevice_t* device) {
  const auto devices = current_visitor().devices();
  if (index >= devices.size()) return NVML_ERROR_INVALID_ARGUMENT;
  return *device = devices[index], NVML_SUCCESS;
}

bool is_lent(nvmlDevice_t device) {
  return std::ranges::find(current_visitor().devices(), device) != current_visitor().devices().end();
}

/// Returns the one of these devices for which the function gives `text`.
nvmlReturn_t by_text(nvmlReturn_t (*get)(nvmlDevice_t, char*, unsigned), std::string_view text,
                     std::string_view optional_prefix, nvmlDevice_t* found) {
  if (!get) return NVML_ERROR_NOT_FOUND;
  for (const nvmlDevice_t device : current_visitor().devices()) {
    char own[128] = "";
    if (get(device, own, sizeof own) != NVML_SUCCESS) continue;
    std::string_view name = own;
    if (name != text && name.starts_with(optional_prefix)) name.remove_prefix(optional_prefix.size());
    if (name == text && !text.empty()) return *found = device, NVML_SUCCESS;
  }
  return NVML_ERROR_NOT_FOUND;
}

nvmlReturn_t by_uuid(const char* uuid, nvmlDevice_t* device) {
  const function_table& real = current_visitor().real();
  const nvmlReturn_t code = by_text(real.nvmlDeviceGetUUID, uuid, "GPU-", device);
  if (code != NVML_ERROR_NOT_FOUND || !std::string_view(uuid).starts_with("MIG-")) return code;
  // It may be a part of a board; then that board must be lent.
  nvmlDevice_t part = nullptr, whole = nullptr;
  if (!real.nvmlDeviceGetHandleByUUID || !real.nvmlDeviceGetDeviceHandleFromMigDeviceHandle ||
      real.nvmlDeviceGetHandleByUUID(uuid, &part) != NVML_SUCCESS ||
      real.nvmlDeviceGetDeviceHandleFromMigDeviceHandle(part, &whole) != NVML_SUCCESS || !is_lent(whole))
    return NVML_ERROR_NOT_FOUND;
  return *device = part, NVML_SUCCESS;
}

nvmlReturn_t by_uuid_struct(const nvmlUUID_v1_t* uuid, nvmlDevice_t* device) {
  constexpr unsigned ascii = 1, binary = 2;
  if (uuid->version != version_of<nvmlUUID_v1_t>(1)) return NVML_ERROR_ARGUMENT_VERSION_MISMATCH;
  if (uuid->type == ascii) {
    const std::string text(uuid->value.str, ::strnlen(uuid->value.str, sizeof uuid->value.str));
    return by_uuid(text.c_str(), device);
  }
  if (uuid->type != binary) return NVML_ERROR_INVALID_ARGUMENT;
  const auto bytes = std::as_bytes(std::span(uuid->value.bytes)).first<16>();
  return by_uuid(("GPU-" + uuid_text(bytes)).c_str(), device);
}

nvmlReturn_t by_serial(const char* serial, nvmlDevice_t* device) {
  return by_text(current_visitor().real().nvmlDeviceGetSerial, serial, "", device);
}

struct bus_address {
  unsigned domain = 0, bus = 0, device = 0;
};

/// [domain:]bus:device[.function], as nvmlDeviceGetHandleByPciBusId takes it.
bool parse_bus_address(const char* text, bus_address& out) {
  unsigned function = 0;
  int end = 0;
  const auto whole = [&] { return text[end] == '\0'; };
  if (std::sscanf(text, "%x:%x:%x.%x%n", &out.domain, &out.bus, &out.device, &function, &end) == 4)
    return whole();
  if (std::sscanf(text, "%x:%x:%x%n", &out.domain, &out.bus, &out.device, &end) == 3) return whole();
  out.domain = 0;
  return std::sscanf(text, "%x:%x.%x%n", &out.bus, &out.device, &function, &end) == 3 && whole();
}

bool find_address(const bus_address& wanted, nvmlDevice_t* found) {
  for (const nvmlDevice_t device : current_visitor().devices()) {
    nvmlPciInfo_t pci{};
    if (current_visitor().real().nvmlDeviceGetPciInfo_v3(device, &pci) != NVML_SUCCESS) continue;
    if (pci.domain == wanted.domain && pci.bus == wanted.bus && pci.device == wanted.device)
      return *found = device, true;
  }
  return false;
}

nvmlReturn_t by_bus(const char* text, nvmlDevice_t* device) {
  bus_address wanted;
  if (!parse_bus_address(text, wanted)) return NVML_ERROR_INVALID_ARGUMENT;
  return find_address(wanted, device) ? NVML_SUCCESS : NVML_ERROR_NOT_FOUND;
}

nvmlReturn_t get_index(nvmlDevice_t device, unsigned* index) {
  const auto devices = current_visitor().devices();
  const auto at = std::ranges::find(devices, device);
  if (at != devices.end()) return *index = static_cast<unsigned>(at - devices.begin()), NVML_SUCCESS;
  auto* const real = current_visitor().real().nvmlDeviceGetIndex;
  return real ? real(device, index) : NVML_ERROR_NOT_SUPPORTED;
}

/// Answers what the driver says of all boards, reduced to those that are lent. `ask` has the form of the
/// driver's function.
template <class Ask>
nvmlReturn_t lent_of(Ask&& ask, unsigned* count, nvmlDevice_t* list) {
  std::array<nvmlDevice_t, most_devices> all{};
  unsigned n = most_devices;
  const nvmlReturn_t code = ask(&n, all.data());
  if (code != NVML_SUCCESS) return code;
  const auto end = std::remove_if(all.begin(), all.begin() + std::min(n, most_devices),
                                  [](nvmlDevice_t device) { return !is_lent(device); });
  const auto there = static_cast<unsigned>(end - all.begin());
  if (list && *count > 0) std::copy_n(all.begin(), std::min(there, *count), list);
  *count = list && *count > 0 ? std::min(there, *count) : there;
  return NVML_SUCCESS;
}

nvmlReturn_t gpus_of_cpu(unsigned cpu, unsigned* count, nvmlDevice_t* list) {
  auto* const real = current_visitor().real().nvmlSystemGetTopologyGpuSet;
  if (!real) return NVML_ERROR_NOT_SUPPORTED;
  return lent_of([&](unsigned* n, nvmlDevice_t* all) { return real(cpu, n, all); }, count, list);
}

nvmlReturn_t nearest_gpus(nvmlDevice_t device, int level, unsigned* count, nvmlDevice_t* list) {
  auto* const real = current_visitor().real().nvmlDeviceGetTopologyNearestGpus;
  if (!real) return NVML_ERROR_NOT_SUPPORTED;
  return lent_of([&](unsigned* n, nvmlDevice_t* all) { return real(device, level, n, all); }, count, list);
}

nvmlReturn_t drain_state(nvmlPciInfo_t* pci, int* state) {
  nvmlDevice_t device = nullptr;
  if (!find_address({pci->domain, pci->bus, pci->device}, &device)) return NVML_ERROR_NOT_FOUND;
  auto* const real = current_visitor().real().nvmlDeviceQueryDrainState;
  return real ? real(pci, state) : NVML_ERROR_NOT_SUPPORTED;
}

}  // namespace

bool is_lent_board(unsigned pci_id) {
  nvmlDevice_t device = nullptr;
  return find_address({pci_id >> 16, pci_id >> 8 & 0xff, pci_id & 0xff}, &device);
}

void shield_devices(function_table& t) {
  t.nvmlDeviceGetCount = t.nvmlDeviceGetCount_v2 = get_count;
  t.nvmlDeviceGetHandleByIndex = t.nvmlDeviceGetHandleByIndex_v2 = by_index;
  t.nvmlDeviceGetHandleByUUID = by_uuid;
  t.nvmlDeviceGetHandleByUUIDV = by_uuid_struct;
  t.nvmlDeviceGetHandleBySerial = by_serial;
  t.nvmlDeviceGetHandleByPciBusId = t.nvmlDeviceGetHandleByPciBusId_v2 = by_bus;
  t.nvmlDeviceGetIndex = get_index;
  t.nvmlSystemGetTopologyGpuSet = gpus_of_cpu;
  t.nvmlDeviceGetTopologyNearestGpus = nearest_gpus;
  t.nvmlDeviceQueryDrainState = drain_state;
  // A chassis has boards that are not lent, and excluded boards are lent to nobody.
  t.nvmlUnitGetCount = [](unsigned* count) { return *count = 0, NVML_SUCCESS; };
  t.nvmlUnitGetHandleByIndex = [](unsigned, nvmlUnit_t*) { return NVML_ERROR_INVALID_ARGUMENT; };
  t.nvmlGetExcludedDeviceCount = [](unsigned* count) { return *count = 0, NVML_SUCCESS; };
  t.nvmlGetExcludedDeviceInfoByIndex = [](unsigned, nvmlExcludedDeviceInfo_t*) {
    return NVML_ERROR_INVALID_ARGUMENT;
  };
}

}  // namespace outboard::backend::nvml
