// The hand-written ends of NVML's LOCAL and CUSTOM lines, and what refused functions say. Any thread.
#pragma once

#include "frontend/nvml/monitor.hh"

namespace outboard::frontend::nvml {

namespace ends {

using namespace api::nvml;

nvmlReturn_t nvmlInit();
nvmlReturn_t nvmlInit_v2();
nvmlReturn_t nvmlInitWithFlags(unsigned flags);
nvmlReturn_t nvmlShutdown();
const char* nvmlErrorString(int result);
nvmlReturn_t nvmlSystemGetNVMLVersion(char* version, unsigned length);
nvmlReturn_t nvmlSystemGetProcessName(unsigned pid, char* name, unsigned length);
nvmlReturn_t nvmlEventSetWait(nvmlEventSet_t set, nvmlEventData_v1_t* data, unsigned timeout_ms);
nvmlReturn_t nvmlEventSetWait_v2(nvmlEventSet_t set, nvmlEventData_t* data, unsigned timeout_ms);
nvmlReturn_t nvmlEventSetWait_v3(nvmlEventSet_t set, nvmlEventSetWait_v3_t* params);
nvmlReturn_t nvmlSystemEventSetWait(nvmlSystemEventSetWaitRequest_v1_t* request);
nvmlReturn_t nvmlDeviceGetRunningProcessDetailList(nvmlDevice_t device, nvmlProcessDetailList_v1_t* list);
nvmlReturn_t nvmlInternalGetExportTable(const void** table, const void* uuid);

}  // namespace ends

/// A refused function: not initialised and null handles come first, as the driver looks at them, too. `code`
/// is what the function's family says.
nvmlReturn_t refuse(std::uint64_t first_argument, bool first_is_device, nvmlReturn_t code);

/// The name of the client's own process `pid`, as NVML shows it: argv[0]. False: there is none.
bool own_process_name(unsigned pid, char* name, std::size_t size);

/// The client's processes on a device, through the server.
nvmlReturn_t list_processes(api::nvml::opcode function, api::nvml::nvmlDevice_t device,
                            std::vector<api::nvml::nvmlProcessInfo_t>& list);

}  // namespace outboard::frontend::nvml
