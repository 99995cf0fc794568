#include "device/cpu/graph/graph_nodes.hh"

#include "device/cpu/memory/memory_operations.hh"

namespace outboard::device::cpu {
namespace {

constexpr unsigned most_operations = 256;

template <class V1>
kernel_parameters narrowed(const V1& p) {
  kernel_parameters out{};
  out.func = p.func;
  out.gridDimX = p.gridDimX, out.gridDimY = p.gridDimY, out.gridDimZ = p.gridDimZ;
  out.blockDimX = p.blockDimX, out.blockDimY = p.blockDimY, out.blockDimZ = p.blockDimZ;
  out.sharedMemBytes = p.sharedMemBytes;
  out.kernelParams = p.kernelParams, out.extra = p.extra;
  out.kern = p.kern, out.ctx = p.ctx;
  return out;
}

}  // namespace

CUresult node_context(CUcontext handle, context_ptr& out) { return context_of(handle, out); }

CUresult make_kernel(const kernel_parameters& p, node_work& out) {
  context_ptr c;
  const auto function = p.func != nullptr ? p.func : reinterpret_cast<CUfunction>(p.kern);
  const auto known = here().functions.find(number(p.func));
  if (const CUresult r =
          node_context(known != nullptr ? reinterpret_cast<CUcontext>(known->owner->handle) : p.ctx, c);
      r != CUDA_SUCCESS) {
    return r;
  }
  const launch_shape how{
      {p.gridDimX, p.gridDimY, p.gridDimZ}, {p.blockDimX, p.blockDimY, p.blockDimZ}, p.sharedMemBytes, false};
  kernel_work work;
  const CUresult r = prepare_kernel(c, function, how, p.kernelParams, p.extra, work);
  if (r == CUDA_SUCCESS) out = std::move(work);
  return r;
}

CUresult make_copy(const CUDA_MEMCPY3D& p, CUcontext context, node_work& out) {
  context_ptr c;
  if (const CUresult r = node_context(context, c); r != CUDA_SUCCESS) return r;
  copy_work work;
  const CUresult r = prepare_copy(c, p, work);
  if (r == CUDA_SUCCESS) out = std::move(work);
  return r;
}

CUresult make_fill(const CUDA_MEMSET_NODE_PARAMS_v2& p, node_work& out) {
  context_ptr c;
  if (const CUresult r = node_context(p.ctx, c); r != CUDA_SUCCESS) return r;
  fill_work work;
  const CUresult r = prepare_fill(c, p, work);
  if (r == CUDA_SUCCESS) out = std::move(work);
  return r;
}

CUresult make_host(CUhostFn function, void* data, node_work& out) {
  if (function == nullptr) return CUDA_ERROR_INVALID_VALUE;
  return out = host_work{function, data}, CUDA_SUCCESS;
}

CUresult make_event(CUevent handle, node_work& out) {
  auto event = here().events.find(number(handle));
  if (event == nullptr) return CUDA_ERROR_INVALID_HANDLE;
  return out = event_work{handle, std::move(event)}, CUDA_SUCCESS;
}

CUresult make_memory_operations(CUcontext context, const CUstreamBatchMemOpParams* operations, unsigned count,
                                unsigned flags, node_work& out) {
  context_ptr c;
  if (const CUresult r = node_context(context, c); r != CUDA_SUCCESS) return r;
  if (count > most_operations || (count > 0 && operations == nullptr)) return CUDA_ERROR_INVALID_VALUE;
  memory_operations_work work{c, {operations, operations + count}, flags};
  if (const CUresult r = check_memory_operations(work.operations, flags); r != CUDA_SUCCESS) return r;
  return out = std::move(work), CUDA_SUCCESS;
}

CUresult make_child(CUgraph handle, node_work& out) {
  const graph_ptr graph = find_graph(handle);
  if (graph == nullptr) return CUDA_ERROR_INVALID_VALUE;
  if (has_memory(*graph)) return CUDA_ERROR_NOT_SUPPORTED;
  return out = child_work{clone_graph(*graph, true)}, CUDA_SUCCESS;
}

CUresult make_allocation(CUDA_MEM_ALLOC_NODE_PARAMS_v2& p, node_work& out) {
  context_ptr c;
  if (const CUresult r = node_context(nullptr, c); r != CUDA_SUCCESS) return r;
  const CUmemLocation& where = p.poolProps.location;
  if (p.poolProps.handleTypes != CU_MEM_HANDLE_TYPE_NONE) return CUDA_ERROR_NOT_SUPPORTED;
  if (p.bytesize == 0 || p.poolProps.allocType != CU_MEM_ALLOCATION_TYPE_PINNED ||
      where.type != CU_MEM_LOCATION_TYPE_DEVICE || where.id != 0 ||
      (p.accessDescCount > 0 && p.accessDescs == nullptr)) {
    return CUDA_ERROR_INVALID_VALUE;
  }
  allocation_work work;
  if (const CUresult r = here().graph_blocks.allocate(p.bytesize, work.block); r != CUDA_SUCCESS) return r;
  p.dptr = work.block->address;
  work.about = p;
  for (std::size_t i = 0; i < p.accessDescCount; ++i) work.access.push_back(p.accessDescs[i]);
  return out = std::move(work), CUDA_SUCCESS;
}

CUresult make_release(CUdeviceptr address, node_work& out) {
  if (!here().graph_blocks.knows(address)) return CUDA_ERROR_INVALID_VALUE;
  return out = release_work{address}, CUDA_SUCCESS;
}

CUresult make_conditional(const CUDA_CONDITIONAL_NODE_PARAMS& p, node_work& out) {
  const auto found = here().conditionals.find(p.handle);
  const bool known = p.type == CU_GRAPH_COND_TYPE_IF || p.type == CU_GRAPH_COND_TYPE_WHILE ||
                     p.type == CU_GRAPH_COND_TYPE_SWITCH;
  const unsigned most = p.type == CU_GRAPH_COND_TYPE_IF ? 2 : p.type == CU_GRAPH_COND_TYPE_WHILE ? 1 : 1024;
  const auto value = found == here().conditionals.end() ? nullptr : found->second.lock();
  if (value == nullptr || !known || p.size == 0 || p.size > most) return CUDA_ERROR_INVALID_VALUE;
  conditional_work work;
  work.value = value;
  work.type = p.type;
  for (unsigned i = 0; i < p.size; ++i) {
    work.bodies.push_back(make_graph(true));
    work.handles.push_back(reinterpret_cast<CUgraph>(work.bodies.back()->handle));
  }
  return out = std::move(work), CUDA_SUCCESS;
}

CUresult make_work(CUgraphNodeParams& p, node_work& out) {
  switch (p.type) {
    case CU_GRAPH_NODE_TYPE_KERNEL:
      return make_kernel(narrowed(p.kernel), out);
    case CU_GRAPH_NODE_TYPE_MEMCPY:
      return make_copy(p.memcpy.copyParams, p.memcpy.copyCtx, out);
    case CU_GRAPH_NODE_TYPE_MEMSET:
      return make_fill(p.memset, out);
    case CU_GRAPH_NODE_TYPE_HOST:
      return make_host(p.host.fn, p.host.userData, out);
    case CU_GRAPH_NODE_TYPE_GRAPH:
      return make_child(p.graph.graph, out);
    case CU_GRAPH_NODE_TYPE_EMPTY:
      return out = std::monostate{}, CUDA_SUCCESS;
    case CU_GRAPH_NODE_TYPE_WAIT_EVENT:
      return make_event(p.eventWait.event, out);
    case CU_GRAPH_NODE_TYPE_EVENT_RECORD:
      return make_event(p.eventRecord.event, out);
    case CU_GRAPH_NODE_TYPE_MEM_ALLOC:
      return make_allocation(p.alloc, out);
    case CU_GRAPH_NODE_TYPE_MEM_FREE:
      return make_release(p.free.dptr, out);
    case CU_GRAPH_NODE_TYPE_CONDITIONAL:
      return make_conditional(p.conditional, out);
    case CU_GRAPH_NODE_TYPE_BATCH_MEM_OP:
      return make_memory_operations(p.memOp.ctx, p.memOp.paramArray, p.memOp.count, p.memOp.flags, out);
    default:
      return CUDA_ERROR_NOT_SUPPORTED;
  }
}

}  // namespace outboard::device::cpu
