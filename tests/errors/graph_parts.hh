// Parts of the wrong calls about graphs: graphs, nodes and parameters that are correct except for one change.
// Called inside a call of the table, on its thread.
#pragma once

#include "world.hh"

namespace wrong_calls {

inline CUgraph graph() {
  CUgraph g = nullptr;
  NEED(cuGraphCreate(&g, 0));
  return g;
}
inline CUgraph graph_gone() {
  CUgraph g = graph();
  NEED(cuGraphDestroy(g));
  return g;
}
inline CUgraphNode empty(CUgraph g, CUgraphNode after = nullptr) {
  CUgraphNode n = nullptr;
  NEED(cuGraphAddEmptyNode(&n, g, &after, after ? 1 : 0));
  return n;
}
inline CUgraphExec exec_of(CUgraph g) {
  CUgraphExec e = nullptr;
  NEED(cuGraphInstantiate(&e, g, 0));
  return e;
}
inline CUgraphExec exec_gone() {
  CUgraphExec e = exec_of(graph());
  NEED(cuGraphExecDestroy(e));
  return e;
}

/// Parameters of a kernel node; alive until the next.
inline const CUDA_KERNEL_NODE_PARAMS& kernel() {
  static CUdeviceptr address;
  static unsigned value = 1;
  static void* parameters[] = {&address, &value};
  static CUDA_KERNEL_NODE_PARAMS p;
  address = w.memory;
  p = {};
  p.func = w.function;
  p.gridDimX = p.gridDimY = p.gridDimZ = p.blockDimX = p.blockDimY = p.blockDimZ = 1;
  p.kernelParams = parameters;
  return p;
}
inline CUDA_MEMSET_NODE_PARAMS fill() {
  CUDA_MEMSET_NODE_PARAMS p{};
  p.dst = w.memory, p.elementSize = 4, p.width = 16, p.height = 1;
  return p;
}
inline CUDA_MEMCPY3D copy() {
  CUDA_MEMCPY3D c{};
  c.srcMemoryType = c.dstMemoryType = CU_MEMORYTYPE_DEVICE, c.srcDevice = w.memory,
  c.dstDevice = w.memory + 4096;
  c.WidthInBytes = 64, c.Height = 1, c.Depth = 1;
  return c;
}
inline void nothing(void*) {}

template <class Change>
CUresult add_kernel(Change change) {
  CUDA_KERNEL_NODE_PARAMS p = kernel();
  change(p);
  return cuGraphAddKernelNode(&o.node, graph(), nullptr, 0, &p);
}
template <class Change>
CUresult add_fill(Change change) {
  CUDA_MEMSET_NODE_PARAMS p = fill();
  change(p);
  return cuGraphAddMemsetNode(&o.node, graph(), nullptr, 0, &p, w.context);
}
template <class Change>
CUresult add_copy(Change change) {
  CUDA_MEMCPY3D p = copy();
  change(p);
  return cuGraphAddMemcpyNode(&o.node, graph(), nullptr, 0, &p, w.context);
}
template <class Change>
CUresult add_node(CUgraphNodeType type, Change change) {
  CUgraphNodeParams p{};
  p.type = type;
  change(p);
  return cuGraphAddNode(&o.node, graph(), nullptr, nullptr, 0, &p);
}
template <class Change>
CUresult add_allocation(Change change) {
  CUDA_MEM_ALLOC_NODE_PARAMS p{};
  p.poolProps.allocType = CU_MEM_ALLOCATION_TYPE_PINNED;
  p.poolProps.location.type = CU_MEM_LOCATION_TYPE_DEVICE, p.poolProps.location.id = w.device;
  p.bytesize = 4096;
  change(p);
  return cuGraphAddMemAllocNode(&o.node, graph(), nullptr, 0, &p);
}

struct with_kernel {
  CUgraph g = graph();
  CUgraphNode node = nullptr;
  CUgraphExec exec = nullptr;
  explicit with_kernel(bool instantiate = true) {
    NEED(cuGraphAddKernelNode(&node, g, nullptr, 0, &kernel()));
    if (instantiate) exec = exec_of(g);
  }
};

}  // namespace wrong_calls
