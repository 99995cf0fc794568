// The undocumented table that nvidia-smi cannot do without ("Mismatch in versions between nvidia-smi and
// NVML" if it is refused). What its entries do was observed from outside, on driver 580.159.04: nvidia-smi
// -L, plain, -q, dmon, pmon and --query-*. Every entry that is not below answers NOT_SUPPORTED, which
// nvidia-smi shows as N/A.
#include <cstdio>
#include <cstring>

#include "frontend/nvml/ends.hh"

namespace outboard::frontend::nvml {
namespace {

using namespace api::nvml;

constexpr unsigned char table_uuid[16] = {0xc4, 0xfe, 0x3e, 0x6c, 0xc9, 0x8f, 0x6c, 0x4e,
                                          0xa3, 0x27, 0xee, 0x69, 0x6e, 0x12, 0xf7, 0xc4};
/// The first word is the table's size in bytes.
constexpr std::size_t table_words = 270;

/// The form in which nvidia-smi reads the processes on a board.
struct shown_process {
  nvmlProcessInfo_t about;
  u64 protected_memory;
  char name[4096];
};
static_assert(sizeof(shown_process) == 4128);

nvmlReturn_t not_supported() { return NVML_ERROR_NOT_SUPPORTED; }

/// [26] (format, stream name, text ...): a line for the vendor's own log.
nvmlReturn_t log_line() { return NVML_SUCCESS; }

/// [72] (device, out): dmon and pmon ask this before they sample a board; 1 if it can be sampled.
nvmlReturn_t can_be_sampled(nvmlDevice_t device, unsigned* yes) {
  if (!device || !yes) return NVML_ERROR_INVALID_ARGUMENT;
  return *yes = 1, NVML_SUCCESS;
}

/// [81] (index, out text): the PCI address of a board, in the short form.
nvmlReturn_t address_by_index(unsigned index, char* address) {
  nvmlDevice_t device = nullptr;
  nvmlPciInfo_t pci{};
  nvmlReturn_t code = ask(opcode::nvmlDeviceGetHandleByIndex_v2, words{index, to_word(&device)});
  if (code == NVML_SUCCESS)
    code = ask(opcode::nvmlDeviceGetPciInfo_v3, words{to_word(device), to_word(&pci)});
  if (code == NVML_SUCCESS) std::strcpy(address, pci.busIdLegacy);
  return code;
}

/// [213] compute, [214] graphics, [215] MPS (device, inout count, out processes ...).
template <opcode Function>
nvmlReturn_t processes(nvmlDevice_t device, unsigned* count, shown_process* out) {
  if (!count) return NVML_ERROR_INVALID_ARGUMENT;
  std::vector<nvmlProcessInfo_t> list;
  const nvmlReturn_t code = list_processes(Function, device, list);
  if (code != NVML_SUCCESS) return code;
  const unsigned room = out ? *count : 0;
  *count = static_cast<unsigned>(list.size());
  if (list.size() > room) return NVML_ERROR_INSUFFICIENT_SIZE;
  for (std::size_t i = 0; i < list.size(); ++i) {
    out[i].about = list[i];
    out[i].protected_memory = 0;
    if (!own_process_name(list[i].pid, out[i].name, sizeof out[i].name))
      std::snprintf(out[i].name, sizeof out[i].name, "[Not Found]");
  }
  return NVML_SUCCESS;
}

struct filled_table {
  const void* words[table_words];
  filled_table() {
    const auto put = [&](std::size_t at, auto* function) {
      words[at] = reinterpret_cast<const void*>(function);
    };
    words[0] = reinterpret_cast<const void*>(sizeof words);
    for (std::size_t i = 1; i < table_words; ++i) put(i, not_supported);
    put(26, log_line);
    put(72, can_be_sampled);
    put(81, address_by_index);
    put(213, processes<opcode::nvmlDeviceGetComputeRunningProcesses_v3>);
    put(214, processes<opcode::nvmlDeviceGetGraphicsRunningProcesses_v3>);
    put(215, processes<opcode::nvmlDeviceGetMPSComputeRunningProcesses_v3>);
  }
};

}  // namespace

nvmlReturn_t ends::nvmlInternalGetExportTable(const void** table, const void* uuid) {
  if (!table || !uuid) return NVML_ERROR_INVALID_ARGUMENT;
  if (std::memcmp(uuid, table_uuid, sizeof table_uuid) != 0) return NVML_ERROR_NOT_FOUND;
  static const filled_table filled;
  return *table = filled.words, NVML_SUCCESS;
}

}  // namespace outboard::frontend::nvml
