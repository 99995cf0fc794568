// The objects that a call of the table can use: a context with one object of each kind, and places for
// outputs. A process has one of each, made by main.cc before a call. Calls must not destroy these objects,
// but may leave others behind.
#pragma once

#include <cuda.h>
#include <cudaProfiler.h>

#include <span>

#include "harness.hh"

namespace wrong_calls {

// The states. In the two capture states `stream` captures, and the call after the tested one ends the
// capture.
inline const state before_init{"before_init", false, false};
inline const state no_context{"no_context", false, false};  ///< the objects exist, no context is current
inline const state without_context{"without_context", true, false};  ///< as no_context
inline const state in_context{"in_context", false, false};
inline const state alone{"alone", true, false};               ///< as in_context
inline const state capturing{"capturing", false, false};      ///< a non-blocking stream, global mode
inline const state relaxed{"relaxed", false, false};          ///< a blocking stream, relaxed mode
inline const state after_reset{"after_reset", false, false};  ///< the primary context was reset
inline const state after_destroy{"after_destroy", false,
                                 false};  ///< the context of the objects was destroyed
inline const state after_fork{"after_fork", false, true};
inline const state after_trap{"after_trap", false, false};  ///< a kernel trapped: a sticky error
inline const state after_wild{"after_wild", false,
                              false};  ///< a kernel wrote to a wild address: a sticky error
// The same state for calls that change what the next one finds.
inline const state after_reset_alone{"after_reset_alone", true, false};
inline const state after_destroy_alone{"after_destroy_alone", true, false};
inline const state after_trap_alone{"after_trap_alone", true, false};
inline const state after_wild_alone{"after_wild_alone", true, false};

struct world {
  CUdevice device = 0;
  CUcontext context = nullptr;  ///< the primary one, except in after_destroy
  CUstream stream = nullptr, other = nullptr;
  CUevent event = nullptr;
  CUmodule module = nullptr;
  CUfunction function = nullptr;  ///< store(u64 address, u32 value)
  CUlibrary library = nullptr;
  CUkernel kernel = nullptr;
  CUdeviceptr memory = 0;  ///< `bytes` of them
  void* pinned = nullptr;
  CUgraph graph = nullptr;  ///< holds `node`, an empty one
  CUgraphNode node = nullptr;
  CUgraphExec exec = nullptr;
  CUarray array = nullptr;  ///< 64 x 64 of one float
  CUmemoryPool pool = nullptr;
  static constexpr std::size_t bytes = 1 << 20;
};
inline world w;

/// Where calls put their outputs.
struct outputs {
  int i = 0, i2 = 0;
  unsigned u = 0, u2 = 0;
  std::size_t n = 0, n2 = 0;
  unsigned long long l = 0;
  float f = 0;
  char text[256] = "";
  const char* name = nullptr;
  void* p = nullptr;
  CUdeviceptr d = 0, d2 = 0;
  CUdevice device = 0;
  CUcontext context = nullptr;
  CUstream stream = nullptr;
  CUevent event = nullptr;
  CUmodule module = nullptr;
  CUfunction function = nullptr;
  CUlibrary library = nullptr;
  CUkernel kernel = nullptr;
  CUlinkState link = nullptr;
  CUgraph graph = nullptr;
  CUgraphNode node = nullptr, node2 = nullptr;
  CUgraphExec exec = nullptr;
  CUarray array = nullptr;
  CUmipmappedArray mipmap = nullptr;
  CUtexObject texture = 0;
  CUsurfObject surface = 0;
  CUmemoryPool pool = nullptr;
  CUmemGenericAllocationHandle allocation = 0;
  CUuserObject object = nullptr;
  CUuuid uuid{};
};
inline outputs o;
alignas(4096) inline char host[65536];  ///< pageable memory

extern const char* const text_of_module;  ///< PTX
/// A function of `w.module`.
CUfunction function_named(const char* name);

using calls = std::vector<wrong_call>;
#define WRONG(name, where, ...)                       \
  {                                                   \
    name, &where, []() -> int { return __VA_ARGS__; } \
  }
#define WRONG_DO(name, where, ...) \
  { name, &where, []() -> int __VA_ARGS__ }

calls initialization_calls();
calls device_calls();
calls context_calls();
calls module_calls();
calls library_calls();
calls link_calls();
calls memory_calls();
calls host_memory_calls();
calls copy_calls();
calls shaped_copy_calls();
calls fill_calls();
calls array_calls();
calls texture_calls();
calls virtual_memory_calls();
calls pool_calls();
calls stream_calls();
calls event_calls();
calls capture_calls();
calls graph_calls();
calls graph_node_calls();
calls graph_exec_calls();
calls launch_calls();
calls occupancy_calls();
calls stream_memory_calls();
calls pointer_calls();
calls managed_calls();
calls sharing_calls();
calls other_calls();
calls lifetime_calls();

}  // namespace wrong_calls
