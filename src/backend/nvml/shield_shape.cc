#include <algorithm>
#include <cstring>

#include "backend/daemon/device_shape.hh"
#include "backend/nvml/shield.hh"
#include "backend/worker/activity.hh"

namespace outboard::backend::nvml {
namespace {

using namespace api::nvml;

nvmlReturn_t get_name(nvmlDevice_t device, char* out, unsigned room) {
  auto* const real = current_visitor().real().nvmlDeviceGetName;
  if (!real) return NVML_ERROR_NOT_SUPPORTED;
  if (current_visitor().shape().name.empty()) return real(device, out, room);
  char own[128] = "";
  const nvmlReturn_t code = real(device, own, sizeof own);
  if (code != NVML_SUCCESS) return code;
  const std::string name = shaped_name(current_visitor().shape(), own);
  if (name.size() >= room) return NVML_ERROR_INSUFFICIENT_SIZE;
  std::memcpy(out, name.c_str(), name.size() + 1);
  return NVML_SUCCESS;
}

/// The part that cuMemGetInfo shows a session too: the limit, what the ledger says, what is left of it.
template <class Memory>
void limit(nvmlDevice_t device, Memory& m) {
  const shape_settings& shape = current_visitor().shape();
  if (shape.memory == 0) return;
  nvmlPciInfo_t pci{};
  if (current_visitor().real().nvmlDeviceGetPciInfo_v3(device, &pci) != NVML_SUCCESS) return;
  pci.busId[sizeof pci.busId - 1] = '\0';
  m.total = shaped_memory(shape, m.total);
  m.used = std::min<u64>(current_visitor().held_on(board_number(pci.busId)), m.total);
  m.free = std::min(m.free, m.total - m.used);
}

nvmlReturn_t get_memory(nvmlDevice_t device, nvmlMemory_t* memory) {
  auto* const real = current_visitor().real().nvmlDeviceGetMemoryInfo;
  if (!real) return NVML_ERROR_NOT_SUPPORTED;
  const nvmlReturn_t code = real(device, memory);
  if (code == NVML_SUCCESS) limit(device, *memory);
  return code;
}

nvmlReturn_t get_memory_v2(nvmlDevice_t device, nvmlMemory_v2_t* memory) {
  auto* const real = current_visitor().real().nvmlDeviceGetMemoryInfo_v2;
  if (!real) return NVML_ERROR_NOT_SUPPORTED;
  const nvmlReturn_t code = real(device, memory);
  if (code != NVML_SUCCESS || current_visitor().shape().memory == 0) return code;
  limit(device, *memory);
  memory->reserved = 0;  // it is of the board, and not in the session's share
  return code;
}

}  // namespace

void shield_shape(function_table& t) {
  t.nvmlDeviceGetName = get_name;
  t.nvmlDeviceGetMemoryInfo = get_memory;
  t.nvmlDeviceGetMemoryInfo_v2 = get_memory_v2;
}

}  // namespace outboard::backend::nvml
