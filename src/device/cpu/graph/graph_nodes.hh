// Checks the parameters of a node and makes its work from them. Used under the graphs' lock by the entries
// that make nodes and by those that change them, in a graph or in an executable graph.
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
/// Clones the graph.
CUresult make_child(CUgraph graph, node_work& out);
/// Takes the memory; `p.dptr` gets its address.
CUresult make_allocation(CUDA_MEM_ALLOC_NODE_PARAMS_v2& p, node_work& out);
CUresult make_release(CUdeviceptr address, node_work& out);

/// Makes the bodies; `p.phGraph_out` points to their handles once the node has the work.
CUresult make_conditional(const CUDA_CONDITIONAL_NODE_PARAMS& p, node_work& out);

/// Makes any kind of work from the general parameters; may write outputs to `p`.
CUresult make_work(CUgraphNodeParams& p, node_work& out);

}  // namespace outboard::device::cpu
