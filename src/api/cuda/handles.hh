// Which C types of the driver API are handles. Compile-time only.
#pragma once

#include "api/cuda/headers.hh"
#include "api/handles.hh"

namespace outboard::api {

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

static_assert(device_address_type<CUdeviceptr>);

}  // namespace outboard::api
