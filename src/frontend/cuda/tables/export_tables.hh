// The undocumented tables of cuGetExportTable that every CUDA runtime asks for, and what some libraries call
// in them. Everything is answered in this process. The tables are constants of static storage: a caller keeps
// the pointer indefinitely, calls from any thread, and their addresses enter the integrity value. The rest of
// the front-end is reached through export_hooks, set once at init, before the first table function can be
// called.
#pragma once

#include <cstddef>
#include <cstdint>

#include "api/cuda/headers.hh"
#include "frontend/cuda/tables/integrity.hh"

namespace outboard::frontend::cuda {

/// Filled by the front-end's one init; every member must be set. All may be called from any thread, and some
/// before cuInit or without a context.
struct export_hooks {
  int (*driver_version)();        ///< what cuDriverGetVersion reports
  std::size_t (*device_count)();  ///< what cuDeviceGetCount reports; 0 before the devices are known
  /// As the public calls report it for this ordinal (UUID and attributes 50, 33, 34); ordinal <
  /// device_count().
  device_identity (*device)(std::size_t ordinal);
  /// The primary context's stable handle, neither retained nor activated; null: no such device.
  CUcontext (*primary_handle)(CUdevice device);
  CUcontext (*current_context)();  ///< of the calling thread, or null; on the hot path of every runtime call
  CUresult (*create_context)(CUcontext* out, unsigned flags, CUdevice device);  ///< cuCtxCreate_v2
  CUresult (*load_module)(CUmodule* out, const void* image);  ///< cuModuleLoadData; wrapper or bare fatbin
  /// Calls `each` once per function of the module. On an error nothing was called.
  CUresult (*module_functions)(CUmodule module, void* opaque,
                               void (*each)(void* opaque, CUfunction function));
  /// The layout of the current context's device, two bytes for each pair of multiprocessors. The caller frees
  /// both with free().
  CUresult (*board_layout)(std::uint8_t** clusters, std::uint8_t** numbers);
  void (*log)(const char* line);       ///< one warning line, no newline; must not throw
  void (*complain)(const char* line);  ///< the same, seen unless the user wants to see nothing
};

/// Functions of the runtime are numbered below this, as CUPTI numbers them.
inline constexpr std::uint32_t runtime_functions = 1024;

/// What a runtime says of a call of its API, twice: when it begins and before it returns. Known by observing
/// runtimes of CUDA 13.0; nothing but this is read.
struct runtime_call {
  std::size_t size;  ///< of this and what follows it
  std::uint64_t reserved[3];
  std::uint64_t* of_tool;  ///< a tool's own word, from one time to the other
  std::int32_t* result;    ///< cudaError_t, the second time
  const char* name;        ///< "cudaMalloc"
  const void* parameters;  ///< a struct of the arguments
  CUcontext context;       ///< current, or null
  CUstream stream;
  std::uint32_t function;  ///< its number
  std::uint32_t returns;   ///< 0: begins, 1: returns
  const char* symbol;      ///< of a launch: the kernel, as the module has it; else null
};

/// Observes the calls of all runtimes in the process (libraries have their own), on the thread that calls.
using runtime_call_observer = void (*)(std::uint32_t function, const runtime_call& call);
void observe_runtime_calls(runtime_call_observer told);
/// From now on the observer sees this function's calls, or no longer. Any thread; it may see only one end of
/// calls under way.
void want_runtime_call(std::uint32_t function, bool wanted);

/// What our libcupti asks for by cuGetExportTable: CUPTI's functions by name, for programs of that major
/// version. Static storage.
struct tool_interface {
  static constexpr std::uint8_t id[16] = {0x6f, 0x75, 0x74, 0x62, 0x6f, 0x61, 0x72, 0x64,
                                          0x20, 0x63, 0x75, 0x70, 0x74, 0x69, 0x20, 0x31};
  std::size_t size;
  void* (*find)(const char* name, int major);  ///< nullptr: not known
};
void set_tool_interface(const tool_interface* table);

/// Must precede the first cuGetExportTable. `hooks` is copied; a second call replaces it (tests).
void set_export_hooks(const export_hooks& hooks);

/// cuGetExportTable: a table, or CUDA_ERROR_INVALID_VALUE and null where the id is unknown or refused.
/// Works before cuInit.
CUresult get_export_table(const void** table, const CUuuid* id);

}  // namespace outboard::frontend::cuda
