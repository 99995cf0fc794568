#include "frontend/nvml/ends.hh"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <string>
#include <thread>
#include <utility>

#include "base/fd.hh"

namespace outboard::frontend::nvml {
namespace {

using namespace api::nvml;

/// The texts of driver 580.159.04.
constexpr const char* error_texts[] = {
    "Success",
    "Uninitialized",
    "Invalid Argument",
    "Not Supported",
    "Insufficient Permissions",
    "Already Initialized",
    "Not Found",
    "Insufficient Size",
    "Insufficient External Power",
    "Driver Not Loaded",
    "Timeout",
    "Interrupt Request Issue",
    "NVML Shared Library Not Found",
    "Function Not Found",
    "Corrupted infoROM",
    "GPU is lost",
    "GPU requires reset",
    "GPU access blocked by the operating system",
    "Driver/library version mismatch",
    "In use by another client",
    "Insufficient Memory",
    "No data",
    "vGPU ECC not supported",
    "Insufficient Resources",
    "Invalid Frequency",
    "Argument version mismatch",
    "Requested functionality has been deprecated",
    "System is not in ready state",
    "No supported GPUs were found",
    "Resource not in correct state to perform requested operation",
    "Reset type is not supported for given device",
};

/// More processes than one board can have contexts.
constexpr unsigned most_processes = 65536;

template <class... A>
nvmlReturn_t ask_for(opcode code, A... arguments) {
  return ask(code, words{to_word(arguments)...});
}

/// The server answers whether something has happened, and does not wait, because all threads share its
/// connection. So we ask again, less and less often.
template <class AskOnce>
nvmlReturn_t wait_for_event(AskOnce&& ask_once, unsigned timeout_ms) {
  using clock = std::chrono::steady_clock;
  const auto until = clock::now() + std::chrono::milliseconds(timeout_ms);
  auto pause = std::chrono::microseconds(1000);
  while (true) {
    const nvmlReturn_t result = ask_once();
    const auto left = std::chrono::duration_cast<std::chrono::microseconds>(until - clock::now());
    if (result != NVML_ERROR_TIMEOUT || left.count() <= 0) return result;
    std::this_thread::sleep_for(std::min(pause, left));
    pause = std::min(pause * 2, std::chrono::microseconds(20000));
  }
}

/// Like wait_for_event(), for functions whose struct says how long to wait; the program's value is restored.
template <class AskOnce>
nvmlReturn_t wait_as_requested(AskOnce&& ask_once, unsigned& timeout_ms) {
  const unsigned asked = std::exchange(timeout_ms, 0);
  const nvmlReturn_t result = wait_for_event(ask_once, asked);
  timeout_ms = asked;
  return result;
}

}  // namespace

nvmlReturn_t refuse(std::uint64_t first_argument, bool first_is_device, nvmlReturn_t code) {
  if (!client::instance().initialised()) return NVML_ERROR_UNINITIALIZED;
  return first_is_device && first_argument == 0 ? NVML_ERROR_INVALID_ARGUMENT : code;
}

bool own_process_name(unsigned pid, char* name, std::size_t size) {
  const unique_fd file(::open(("/proc/" + std::to_string(pid) + "/cmdline").c_str(), O_RDONLY | O_CLOEXEC));
  if (!file || size == 0) return false;
  const ssize_t got = ::read(file.get(), name, size - 1);
  name[std::max<ssize_t>(got, 0)] = '\0';
  return got > 0;
}

nvmlReturn_t list_processes(opcode function, nvmlDevice_t device, std::vector<nvmlProcessInfo_t>& list) {
  unsigned count = 0;
  nvmlReturn_t code = ask_for(function, device, &count, static_cast<nvmlProcessInfo_t*>(nullptr));
  // The list may grow between two questions.
  for (int tries = 0; code == NVML_ERROR_INSUFFICIENT_SIZE && tries < 8; ++tries) {
    if (count > most_processes) return list.clear(), NVML_ERROR_UNKNOWN;
    count += 8;
    list.resize(count);
    code = ask_for(function, device, &count, list.data());
  }
  // A server may also report success to a question without room for a list.
  list.resize(code == NVML_SUCCESS ? std::min<std::size_t>(count, list.size()) : 0);
  return code;
}

namespace ends {

nvmlReturn_t nvmlInit() { return client::instance().init(); }
nvmlReturn_t nvmlInit_v2() { return client::instance().init(); }
// The flags say what to do without a GPU, or not to attach to one; neither changes anything here.
nvmlReturn_t nvmlInitWithFlags(unsigned) { return client::instance().init(); }
nvmlReturn_t nvmlShutdown() { return client::instance().shutdown(); }

const char* nvmlErrorString(int result) {
  const bool known = result >= 0 && static_cast<std::size_t>(result) < std::size(error_texts);
  return known ? error_texts[result] : "Unknown Error";
}

nvmlReturn_t nvmlSystemGetNVMLVersion(char* version, unsigned length) {
  if (!version) return NVML_ERROR_INVALID_ARGUMENT;
  if (client::instance().initialised()) return ask_for(opcode::nvmlSystemGetNVMLVersion, version, length);
  // The one function that works without nvmlInit: the version is the server's.
  nvmlReturn_t code = client::instance().init();
  if (code != NVML_SUCCESS) return code;
  code = ask_for(opcode::nvmlSystemGetNVMLVersion, version, length);
  client::instance().shutdown();
  return code;
}

nvmlReturn_t nvmlSystemGetProcessName(unsigned pid, char* name, unsigned length) {
  if (!client::instance().initialised()) return NVML_ERROR_UNINITIALIZED;
  if (!name || length == 0) return NVML_ERROR_INVALID_ARGUMENT;
  // Process numbers that a client sees are those of its own host.
  return own_process_name(pid, name, length) ? NVML_SUCCESS : NVML_ERROR_NOT_FOUND;
}

nvmlReturn_t nvmlEventSetWait(nvmlEventSet_t set, nvmlEventData_v1_t* data, unsigned timeout_ms) {
  return wait_for_event([&] { return ask_for(opcode::nvmlEventSetWait, set, data, 0u); }, timeout_ms);
}

nvmlReturn_t nvmlEventSetWait_v2(nvmlEventSet_t set, nvmlEventData_t* data, unsigned timeout_ms) {
  return wait_for_event([&] { return ask_for(opcode::nvmlEventSetWait_v2, set, data, 0u); }, timeout_ms);
}

nvmlReturn_t nvmlEventSetWait_v3(nvmlEventSet_t set, nvmlEventSetWait_v3_t* params) {
  const auto ask_once = [&] { return ask_for(opcode::nvmlEventSetWait_v3, set, params); };
  return params ? wait_as_requested(ask_once, params->timeoutMs) : ask_once();
}

nvmlReturn_t nvmlSystemEventSetWait(nvmlSystemEventSetWaitRequest_v1_t* request) {
  const auto ask_once = [&] { return ask_for(opcode::nvmlSystemEventSetWait, request); };
  // A struct of another version has its time-out in an unknown place.
  const bool known = request && request->version == version_of<nvmlSystemEventSetWaitRequest_v1_t>(1);
  return known ? wait_as_requested(ask_once, request->timeoutms) : ask_once();
}

nvmlReturn_t nvmlDeviceGetRunningProcessDetailList(nvmlDevice_t device, nvmlProcessDetailList_v1_t* list) {
  if (!client::instance().initialised()) return NVML_ERROR_UNINITIALIZED;
  if (!list) return NVML_ERROR_INVALID_ARGUMENT;
  if (list->version != version_of<nvmlProcessDetailList_v1_t>(1)) return NVML_ERROR_ARGUMENT_VERSION_MISMATCH;
  constexpr opcode by_mode[] = {opcode::nvmlDeviceGetComputeRunningProcesses_v3,
                                opcode::nvmlDeviceGetGraphicsRunningProcesses_v3,
                                opcode::nvmlDeviceGetMPSComputeRunningProcesses_v3};
  if (list->mode >= std::size(by_mode)) return NVML_ERROR_INVALID_ARGUMENT;
  std::vector<nvmlProcessInfo_t> found;
  const nvmlReturn_t code = list_processes(by_mode[list->mode], device, found);
  if (code != NVML_SUCCESS) return code;
  const unsigned room = list->procArray ? list->numProcArrayEntries : 0;
  list->numProcArrayEntries = static_cast<unsigned>(found.size());
  if (found.size() > room) return NVML_ERROR_INSUFFICIENT_SIZE;
  for (std::size_t i = 0; i < found.size(); ++i) {
    const nvmlProcessInfo_t& p = found[i];
    list->procArray[i] = {p.pid, p.usedGpuMemory, p.gpuInstanceId, p.computeInstanceId, 0};
  }
  return NVML_SUCCESS;
}

}  // namespace ends

}  // namespace outboard::frontend::nvml
