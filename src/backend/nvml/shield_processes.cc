#include <algorithm>
#include <vector>

#include "backend/nvml/shield.hh"

namespace outboard::backend::nvml {
namespace {

using namespace api::nvml;

/// Limits the processes on one board. MPS servers have dozens of them.
constexpr unsigned most_processes = 4096;

const own_process* find_worker(const std::vector<own_process>& own, unsigned worker) {
  const auto at = std::ranges::find(own, static_cast<pid_t>(worker), &own_process::worker);
  return at == own.end() ? nullptr : &*at;
}

/// Returns the whole list of a function of the device.
template <class Item, class Ask>
nvmlReturn_t list_all(Ask&& ask, std::vector<Item>& all) {
  // The list may grow between the question for its length and that for its items.
  for (unsigned room = 64; room <= most_processes; room *= 4) {
    all.assign(room, Item{});
    unsigned n = room;
    const nvmlReturn_t code = ask(&n, all.data());
    if (code == NVML_ERROR_INSUFFICIENT_SIZE) continue;
    all.resize(code == NVML_SUCCESS ? std::min(n, room) : 0);
    return code;
  }
  all.clear();
  return NVML_ERROR_MEMORY;
}

/// Reduces the list to the client's own processes, by its own process numbers.
template <class Item>
void keep_own(std::vector<Item>& list) {
  const std::vector<own_process> own = current_visitor().processes();
  std::erase_if(list, [&](Item& item) {
    const own_process* process = find_worker(own, item.pid);
    if (process) item.pid = process->client_process;
    return process == nullptr;
  });
}

/// Returns a list as the driver does: the number, and the items if there is room.
template <class Out, class Item, class Convert>
nvmlReturn_t give_list(const std::vector<Item>& list, unsigned* count, Out* out, Convert&& convert) {
  const auto n = static_cast<unsigned>(list.size());
  const unsigned room = out ? *count : 0;
  *count = n;
  if (n > room) return NVML_ERROR_INSUFFICIENT_SIZE;
  for (unsigned i = 0; i < n; ++i) out[i] = convert(list[i]);
  return NVML_SUCCESS;
}

using list_function = nvmlReturn_t (*)(nvmlDevice_t, unsigned*, nvmlProcessInfo_t*);

/// Without a driver to ask, every process that holds memory counts as computing.
std::vector<nvmlProcessInfo_t> processes_that_tell() {
  constexpr unsigned no_instance = ~0u;
  std::vector<nvmlProcessInfo_t> list;
  for (const own_process& process : current_visitor().processes()) {
    if (process.device_bytes.value_or(0) != 0)
      list.push_back({process.client_process, *process.device_bytes, no_instance, no_instance});
  }
  return list;
}

template <class Out>
Out convert(const nvmlProcessInfo_t& p) {
  if constexpr (std::is_same_v<Out, nvmlProcessInfo_v1_t>) {
    return {p.pid, p.usedGpuMemory};
  } else {
    return {p.pid, p.usedGpuMemory, p.gpuInstanceId, p.computeInstanceId};
  }
}

template <list_function function_table::*Entry, class Out>
nvmlReturn_t processes(nvmlDevice_t device, unsigned* count, Out* out) {
  const list_function real = current_visitor().real().*Entry;
  std::vector<nvmlProcessInfo_t> list;
  if (real) {
    const nvmlReturn_t code =
        list_all([&](unsigned* n, nvmlProcessInfo_t* all) { return real(device, n, all); }, list);
    if (code != NVML_SUCCESS) return code;
    keep_own(list);
  } else if (Entry == &function_table::nvmlDeviceGetComputeRunningProcesses_v3) {
    list = processes_that_tell();
  }
  return give_list(list, count, out, convert<Out>);
}

nvmlReturn_t utilisation(nvmlDevice_t device, nvmlProcessUtilizationSample_t* out, unsigned* count,
                         u64 since) {
  auto* const real = current_visitor().real().nvmlDeviceGetProcessUtilization;
  if (!real) return NVML_ERROR_NOT_SUPPORTED;
  std::vector<nvmlProcessUtilizationSample_t> list;
  const nvmlReturn_t code = list_all(
      [&](unsigned* n, nvmlProcessUtilizationSample_t* all) { return real(device, all, n, since); }, list);
  if (code != NVML_SUCCESS) return code;
  keep_own(list);
  if (list.empty()) return *count = 0, NVML_ERROR_NOT_FOUND;
  return give_list(list, count, out, [](const auto& item) { return item; });
}

nvmlReturn_t utilisation_info(nvmlDevice_t device, nvmlProcessesUtilizationInfo_v1_t* info) {
  using info_struct = nvmlProcessesUtilizationInfo_v1_t;
  using item = nvmlProcessUtilizationInfo_v1_t;
  auto* const real = current_visitor().real().nvmlDeviceGetProcessesUtilizationInfo;
  if (!real) return current_visitor().absent();
  if (info->version != version_of<info_struct>(1)) return NVML_ERROR_ARGUMENT_VERSION_MISMATCH;
  std::vector<item> list;
  const nvmlReturn_t code = list_all(
      [&](unsigned* n, item* all) {
        info_struct question{info->version, *n, info->lastSeenTimeStamp, all};
        const nvmlReturn_t answer = real(device, &question);
        return *n = question.processSamplesCount, answer;
      },
      list);
  if (code != NVML_SUCCESS) return code;
  keep_own(list);
  if (list.empty()) return info->processSamplesCount = 0, NVML_ERROR_NOT_FOUND;
  return give_list(list, &info->processSamplesCount, info->procUtilArray, [](const item& i) { return i; });
}

struct numbered {
  unsigned pid;
};

nvmlReturn_t accounted(nvmlDevice_t device, unsigned* count, unsigned* pids) {
  auto* const real = current_visitor().real().nvmlDeviceGetAccountingPids;
  if (!real) return NVML_ERROR_NOT_SUPPORTED;
  static_assert(sizeof(numbered) == sizeof(unsigned));
  std::vector<unsigned> all;
  const nvmlReturn_t code = list_all([&](unsigned* n, unsigned* list) { return real(device, n, list); }, all);
  if (code != NVML_SUCCESS) return code;
  std::vector<numbered> list;
  for (const unsigned pid : all) list.push_back({pid});
  keep_own(list);
  return give_list(list, count, pids, [](const numbered& n) { return n.pid; });
}

/// Returns the worker that stands for a process of the client; 0 if there is none.
unsigned worker_of(unsigned client_process) {
  for (const own_process& process : current_visitor().processes()) {
    if (process.client_process == client_process) return static_cast<unsigned>(process.worker);
  }
  return 0;
}

nvmlReturn_t accounting_stats(nvmlDevice_t device, unsigned pid, nvmlAccountingStats_t* stats) {
  auto* const real = current_visitor().real().nvmlDeviceGetAccountingStats;
  if (!real) return NVML_ERROR_NOT_SUPPORTED;
  const unsigned worker = worker_of(pid);
  return worker != 0 ? real(device, worker, stats) : NVML_ERROR_NOT_FOUND;
}

nvmlReturn_t accounting_stats_v2(nvmlDevice_t device, nvmlAccountingStats_v2_t* stats) {
  auto* const real = current_visitor().real().nvmlDeviceGetAccountingStats_v2;
  if (!real) return NVML_ERROR_FUNCTION_NOT_FOUND;
  const unsigned pid = stats->pid, worker = worker_of(pid);
  if (worker == 0) return NVML_ERROR_NOT_FOUND;
  stats->pid = worker;
  const nvmlReturn_t code = real(device, stats);
  stats->pid = pid;
  return code;
}

template <auto Entry, class Item>
nvmlReturn_t sessions(nvmlDevice_t device, unsigned* count, Item* out) {
  auto* const real = current_visitor().real().*Entry;
  if (!real) return NVML_ERROR_NOT_SUPPORTED;
  std::vector<Item> list;
  const nvmlReturn_t code = list_all([&](unsigned* n, Item* all) { return real(device, n, all); }, list);
  if (code != NVML_SUCCESS) return code;
  keep_own(list);
  return give_list(list, count, out, [](const Item& item) { return item; });
}

}  // namespace

void shield_processes(function_table& t) {
  using p1 = nvmlProcessInfo_v1_t;
  using p2 = nvmlProcessInfo_v2_t;
  using p3 = nvmlProcessInfo_t;
  constexpr auto compute = &function_table::nvmlDeviceGetComputeRunningProcesses_v3;
  constexpr auto graphics = &function_table::nvmlDeviceGetGraphicsRunningProcesses_v3;
  constexpr auto mps = &function_table::nvmlDeviceGetMPSComputeRunningProcesses_v3;
  t.nvmlDeviceGetComputeRunningProcesses = processes<compute, p1>;
  t.nvmlDeviceGetComputeRunningProcesses_v2 = processes<compute, p2>;
  t.nvmlDeviceGetComputeRunningProcesses_v3 = processes<compute, p3>;
  t.nvmlDeviceGetGraphicsRunningProcesses = processes<graphics, p1>;
  t.nvmlDeviceGetGraphicsRunningProcesses_v2 = processes<graphics, p2>;
  t.nvmlDeviceGetGraphicsRunningProcesses_v3 = processes<graphics, p3>;
  t.nvmlDeviceGetMPSComputeRunningProcesses = processes<mps, p1>;
  t.nvmlDeviceGetMPSComputeRunningProcesses_v2 = processes<mps, p2>;
  t.nvmlDeviceGetMPSComputeRunningProcesses_v3 = processes<mps, p3>;
  t.nvmlDeviceGetProcessUtilization = utilisation;
  t.nvmlDeviceGetProcessesUtilizationInfo = utilisation_info;
  t.nvmlDeviceGetAccountingPids = accounted;
  t.nvmlDeviceGetAccountingStats = accounting_stats;
  t.nvmlDeviceGetAccountingStats_v2 = accounting_stats_v2;
  t.nvmlDeviceGetEncoderSessions =
      sessions<&function_table::nvmlDeviceGetEncoderSessions, nvmlEncoderSessionInfo_t>;
  t.nvmlDeviceGetFBCSessions = sessions<&function_table::nvmlDeviceGetFBCSessions, nvmlFBCSessionInfo_t>;
}

}  // namespace outboard::backend::nvml
