// Which C types of the driver API are handles. One enum value a type; the numbers travel inside every handle
// value (wire/handle.hh), so they are append-only. Compile-time only.
#pragma once

#include <concepts>
#include <cstdint>

#include "api/cuda/headers.hh"

namespace outboard::api {

enum class handle_kind : std::uint8_t {
  none = 0,
  context = 1,
  module = 2,
  function = 3,
  library = 4,
  kernel = 5,
  stream = 6,
  event = 7,
  graph = 8,
  graph_node = 9,
  graph_exec = 10,
  memory_pool = 11,
  array = 12,
  mipmapped_array = 13,
  texture_reference = 14,
  surface_reference = 15,
  link_state = 16,
  user_object = 17,
  external_memory = 18,
  external_semaphore = 19,
  green_context = 20,
  graphics_resource = 21,
  resource_descriptor = 22,
  allocation = 23,  ///< CUmemGenericAllocationHandle: an integer type, so only hand-written ends translate it
  texture_object = 24,  ///< CUtexObject, likewise; the program sees the device's value
  surface_object = 25,
  count
};

template <class T>
struct handle_trait {
  static constexpr handle_kind kind = handle_kind::none;
};

#define OUTBOARD_HANDLE(type, value)                        \
  template <>                                               \
  struct handle_trait<type> {                               \
    static constexpr handle_kind kind = handle_kind::value; \
  }
OUTBOARD_HANDLE(CUcontext, context);
OUTBOARD_HANDLE(CUmodule, module);
OUTBOARD_HANDLE(CUfunction, function);
OUTBOARD_HANDLE(CUlibrary, library);
OUTBOARD_HANDLE(CUkernel, kernel);
OUTBOARD_HANDLE(CUstream, stream);
OUTBOARD_HANDLE(CUevent, event);
OUTBOARD_HANDLE(CUgraph, graph);
OUTBOARD_HANDLE(CUgraphNode, graph_node);
OUTBOARD_HANDLE(CUgraphExec, graph_exec);
OUTBOARD_HANDLE(CUmemoryPool, memory_pool);
OUTBOARD_HANDLE(CUarray, array);
OUTBOARD_HANDLE(CUmipmappedArray, mipmapped_array);
OUTBOARD_HANDLE(CUtexref, texture_reference);
OUTBOARD_HANDLE(CUsurfref, surface_reference);
OUTBOARD_HANDLE(CUlinkState, link_state);
OUTBOARD_HANDLE(CUuserObject, user_object);
OUTBOARD_HANDLE(CUexternalMemory, external_memory);
OUTBOARD_HANDLE(CUexternalSemaphore, external_semaphore);
OUTBOARD_HANDLE(CUgreenCtx, green_context);
OUTBOARD_HANDLE(CUgraphicsResource, graphics_resource);
OUTBOARD_HANDLE(CUdevResourceDesc, resource_descriptor);
#undef OUTBOARD_HANDLE

template <class T>
concept handle_type = handle_trait<T>::kind != handle_kind::none;

}  // namespace outboard::api
