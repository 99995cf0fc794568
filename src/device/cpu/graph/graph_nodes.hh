// What the parameters of a node become: checked work. Used by the entries that make nodes and by those that
// change them, in a graph or in an executable one; under the graphs' lock.
#pragma once

#include "device/cpu/graph/graph_handles.hh"

namespace outboard::device::cpu {

using kernel_parameters = CUDA_KERNEL_NODE_PARAMS_v2;

/// The context that a node's parameters name; null means the current one.
CUresult node_context(CUcontext handle, context_ptr& out);

CUresult make_kernel(const kernel_parameters& p, node_work& out);
CUresult make_copy(const CUDA_MEMCPY3D& p, CUcontext context, node_work& out);
CUresult make_fill(const CUDA_MEMSET_NODE_PARAMS_v2& p, node_work& out);
CUresult make_host(CUhostFn function, void* data, node_work& out);
CUresult make_event(CUevent handle, node_work& out);
CUresult make_memory_operations(CUcontext context, const CUstreamBatchMemOpParams* operations, unsigned count,
                                unsigned flags, node_work& out);
/// The graph is cloned.
CUresult make_child(CUgraph graph, node_work& out);
/// Takes the memory; `p.dptr` gets its address.
CUresult make_allocation(CUDA_MEM_ALLOC_NODE_PARAMS_v2& p, node_work& out);
CUresult make_release(CUdeviceptr address, node_work& out);

/// The bodies are made; `p.phGraph_out` leads to their handles, once the node has the work.
CUresult make_conditional(const CUDA_CONDITIONAL_NODE_PARAMS& p, node_work& out);

/// The same by the general parameters; `p` may get outputs.
CUresult make_work(CUgraphNodeParams& p, node_work& out);

}  // namespace outboard::device::cpu
