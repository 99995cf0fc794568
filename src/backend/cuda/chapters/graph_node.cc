// Handlers of the chapter graph about nodes: the client's description into the driver's parameters and back.
#include <bit>
#include <cstring>

#include "backend/cuda/ends.hh"
#include "backend/cuda/graph/graph_handles.hh"

namespace outboard::backend {
namespace {

/// The driver's parameters of one node, and what they point to.
struct native_node {
  CUgraphNodeParams p{};
  std::size_t parameter_bytes = 0;
  void* extra[5] = {};
  std::vector<CUmemAccessDesc> access;
  std::vector<CUstreamBatchMemOpParams> operations;
  host_calls::function* function = nullptr;  ///< ours until the driver has it
  std::vector<boxed_bytes> blocks;           ///< the same
};

CUresult find_context(call& c, std::uint64_t id, CUcontext& out) {
  out = nullptr;
  return id ? c.objects().resolve(id, out) : CUDA_SUCCESS;
}

CUresult to_native(call& c, const marshal::kernel_node& from, native_node& to) {
  CUDA_KERNEL_NODE_PARAMS_v3& p = to.p.kernel;
  CUfunction function = nullptr;
  if (const CUresult code = c.objects().resolve(from.kernel, function); code != CUDA_SUCCESS) return code;
  if (const CUresult code = find_context(c, from.context, p.ctx); code != CUDA_SUCCESS) return code;
  const bool kernel = wire::handle{from.kernel}.kind() == static_cast<std::uint8_t>(api::handle_kind::kernel);
  if (kernel) {
    p.kern = reinterpret_cast<CUkernel>(function);
  } else {
    p.func = function;
  }
  p.gridDimX = from.grid[0], p.gridDimY = from.grid[1], p.gridDimZ = from.grid[2];
  p.blockDimX = from.block[0], p.blockDimY = from.block[1], p.blockDimZ = from.block[2];
  p.sharedMemBytes = from.shared;
  to.parameter_bytes = from.parameters.size();
  void* list[] = {CU_LAUNCH_PARAM_BUFFER_POINTER, const_cast<std::uint8_t*>(from.parameters.data()),
                  CU_LAUNCH_PARAM_BUFFER_SIZE, &to.parameter_bytes, CU_LAUNCH_PARAM_END};
  std::memcpy(to.extra, list, sizeof list);
  if (to.parameter_bytes) p.extra = to.extra;
  return CUDA_SUCCESS;
}

/// The place that one end of a copy names; a host box becomes a block here.
CUresult to_place(call& c, const marshal::copy_side& from, const marshal::copy_node& shape, native_node& to,
                  const void*& host, CUdeviceptr& device, CUarray& array) {
  if (from.box) {
    std::uint64_t size = 0;
    if (__builtin_mul_overflow(shape.width, shape.height, &size) ||
        __builtin_mul_overflow(size, shape.depth, &size))
      return CUDA_ERROR_INVALID_VALUE;
    const auto made = c.session.captured_copies().make({from.box, size, shape.width, c.header.context});
    if (!made) return CUDA_ERROR_OUT_OF_MEMORY;
    to.blocks.push_back(*made);
    host = made->data;
  }
  device = from.address;
  return from.array ? c.objects().resolve(from.array, array) : CUDA_SUCCESS;
}

bool memory_type(const marshal::copy_side& from, CUmemorytype& out) {
  const bool host = from.box != 0;
  out = host ? CU_MEMORYTYPE_HOST : static_cast<CUmemorytype>(from.memory);
  // An address of this process that a peer chose would be read or written: only blocks of ours are host
  // memory.
  return host || from.memory == CU_MEMORYTYPE_DEVICE || from.memory == CU_MEMORYTYPE_ARRAY;
}

CUresult to_native(call& c, const marshal::copy_node& from, native_node& to) {
  CUDA_MEMCPY3D& p = to.p.memcpy.copyParams;
  if (const CUresult code = find_context(c, from.context, to.p.memcpy.copyCtx); code != CUDA_SUCCESS)
    return code;
  if (!memory_type(from.from, p.srcMemoryType) || !memory_type(from.to, p.dstMemoryType))
    return CUDA_ERROR_INVALID_VALUE;
  const marshal::copy_side &s = from.from, &t = from.to;
  p.srcXInBytes = s.x, p.srcY = s.y, p.srcZ = s.z, p.srcLOD = s.level;
  p.srcPitch = s.pitch, p.srcHeight = s.height;
  CUresult code = to_place(c, s, from, to, p.srcHost, p.srcDevice, p.srcArray);
  p.dstXInBytes = t.x, p.dstY = t.y, p.dstZ = t.z, p.dstLOD = t.level;
  p.dstPitch = t.pitch, p.dstHeight = t.height;
  const void* target = nullptr;
  if (code == CUDA_SUCCESS) code = to_place(c, t, from, to, target, p.dstDevice, p.dstArray);
  p.dstHost = const_cast<void*>(target);
  p.WidthInBytes = from.width, p.Height = from.height, p.Depth = from.depth;
  return code;
}

CUresult to_native(call& c, const marshal::memset_node& from, native_node& to) {
  to.p.memset = {.dst = from.address,
                 .pitch = from.pitch,
                 .value = from.value,
                 .elementSize = from.element_size,
                 .width = from.width,
                 .height = from.height,
                 .ctx = nullptr};
  return find_context(c, from.context, to.p.memset.ctx);
}

CUresult to_native(call& c, const marshal::host_node& from, native_node& to) {
  to.function = c.session.host().make(from.function, false);
  to.p.host = {host_calls::run, to.function};
  return CUDA_SUCCESS;
}

CUresult to_native(call& c, const marshal::child_node& from, native_node& to) {
  return find(c, from.graph, to.p.graph.graph);
}

CUresult to_native(call&, const marshal::empty_node&, native_node&) { return CUDA_SUCCESS; }

CUresult to_native(call& c, const marshal::wait_node& from, native_node& to) {
  return c.objects().resolve(from.event, to.p.eventWait.event);
}

CUresult to_native(call& c, const marshal::record_node& from, native_node& to) {
  return c.objects().resolve(from.event, to.p.eventRecord.event);
}

CUresult to_native(call&, const marshal::alloc_node& from, native_node& to) {
  CUDA_MEM_ALLOC_NODE_PARAMS_v2& p = to.p.alloc;
  p.poolProps.allocType = static_cast<CUmemAllocationType>(from.allocation_type);
  p.poolProps.handleTypes = static_cast<CUmemAllocationHandleType>(from.handle_types);
  p.poolProps.location = {static_cast<CUmemLocationType>(from.location_type), from.location};
  p.poolProps.maxSize = from.max_size;
  p.poolProps.usage = from.usage;
  p.bytesize = from.size;
  to.access.resize(from.access.size() / sizeof(CUmemAccessDesc));
  if (!to.access.empty()) std::memcpy(to.access.data(), from.access.data(), from.access.size());
  p.accessDescs = to.access.empty() ? nullptr : to.access.data();
  p.accessDescCount = to.access.size();
  return CUDA_SUCCESS;
}

CUresult to_native(call&, const marshal::free_node& from, native_node& to) {
  return to.p.free.dptr = from.address, CUDA_SUCCESS;
}

CUresult to_native(call& c, const marshal::operations_node& from, native_node& to) {
  to.operations.resize(from.operations.size() / sizeof(CUstreamBatchMemOpParams));
  if (!to.operations.empty())
    std::memcpy(to.operations.data(), from.operations.data(), from.operations.size());
  to.p.memOp = {nullptr, static_cast<unsigned>(to.operations.size()), to.operations.data(), from.flags};
  return find_context(c, from.context, to.p.memOp.ctx);
}

CUresult to_native(call& c, const marshal::conditional_node& from, native_node& to) {
  to.p.conditional.handle = from.condition;
  to.p.conditional.type = static_cast<CUgraphConditionalNodeType>(from.kind);
  to.p.conditional.size = from.size;
  return find_context(c, from.context, to.p.conditional.ctx);
}

CUresult to_native(call& c, const marshal::node_parameters& from, native_node& to) {
  to.p.type = from.type();
  return std::visit([&](const auto& node) { return to_native(c, node, to); }, from.node);
}

/// Whole items, and no more of them than a driver takes.
template <class Item>
bool holds(const std::vector<std::uint8_t>& bytes, std::size_t most) {
  return bytes.size() % sizeof(Item) == 0 && bytes.size() / sizeof(Item) <= most;
}

bool well_formed(const marshal::node_parameters& from) {
  if (const auto* kernel = std::get_if<marshal::kernel_node>(&from.node))
    return kernel->parameters.size() <= marshal::max_parameter_bytes;
  if (const auto* allocation = std::get_if<marshal::alloc_node>(&from.node))
    return holds<CUmemAccessDesc>(allocation->access, 64);
  if (const auto* batch = std::get_if<marshal::operations_node>(&from.node))
    return holds<CUstreamBatchMemOpParams>(batch->operations, 256);
  const auto* conditional = std::get_if<marshal::conditional_node>(&from.node);
  return !conditional || conditional->size <= 1024;
}

/// What the driver did not take goes.
void drop(call& c, native_node& n) {
  delete n.function;
  for (const boxed_bytes& b : n.blocks) c.session.captured_copies().release(b);
}

/// What it took lives as long as the graph.
void keep(call& c, CUgraph graph, native_node& n) {
  if (n.function) keep_with_graph(c, graph, n.function);
  for (const boxed_bytes& b : n.blocks) c.session.captured_copies().hold(graph, b);
}

/// No user object can be given to an executable graph: it keeps what changes in it alone until it is
/// destroyed. False: see learn_needs().
bool change_in_exec(call& c, const marshal::set_node_body& body, CUgraphNode node, const native_node& n,
                    exec_needs& needs) {
  exec_changes& changed = needs.changed;
  const bool idle = !needs.last || c.driver().cuEventQuery(needs.last) == CUDA_SUCCESS;
  if (n.function) {
    if (auto& slot = changed.functions[node]) {
      if (idle) {
        host_calls::destroyed(slot);
      } else {
        changed.old_functions.push_back(slot);
      }
    }
    changed.functions[node] = n.function;
  }
  for (const boxed_bytes& b : n.blocks) {
    if (const auto old = changed.copies.find(node); old != changed.copies.end()) {
      if (idle) {
        c.session.captured_copies().release(old->second);
      } else {
        changed.old_copies.push_back(old->second);
      }
    }
    changed.copies[node] = b;
  }
  const bool known = needs.graph && c.objects().parent_of(body.handle) == needs.graph;
  if ((!n.function && n.blocks.empty()) || !known) return true;
  return learn_needs(c.driver(), c.session.captured_copies(), needs.graph, needs);
}

struct place {
  CUgraphNode* out;
  CUgraph graph;
  const CUgraphNode* before;
  std::size_t count;
};

/// By the entry of its type: those are as old as graphs are, and the general one is not.
CUresult add_by_type(const api::driver_table& d, const place& w, CUgraphNodeParams& p) {
  switch (p.type) {
    case CU_GRAPH_NODE_TYPE_KERNEL: {
      CUDA_KERNEL_NODE_PARAMS_v2 kernel{};
      std::memcpy(&kernel, &p.kernel, sizeof kernel);
      if (d.cuGraphAddKernelNode_v2)
        return d.cuGraphAddKernelNode_v2(w.out, w.graph, w.before, w.count, &kernel);
      CUDA_KERNEL_NODE_PARAMS_v1 old{};
      std::memcpy(&old, &kernel, sizeof old);
      return call_driver(d.cuGraphAddKernelNode, w.out, w.graph, w.before, w.count, &old);
    }
    case CU_GRAPH_NODE_TYPE_MEMCPY: {
      CUcontext context = p.memcpy.copyCtx;
      if (!context) d.cuCtxGetCurrent(&context);
      return call_driver(d.cuGraphAddMemcpyNode, w.out, w.graph, w.before, w.count, &p.memcpy.copyParams,
                         context);
    }
    case CU_GRAPH_NODE_TYPE_MEMSET: {
      const CUDA_MEMSET_NODE_PARAMS_v1 old{p.memset.dst,         p.memset.pitch, p.memset.value,
                                           p.memset.elementSize, p.memset.width, p.memset.height};
      CUcontext context = p.memset.ctx;
      if (!context) d.cuCtxGetCurrent(&context);
      return call_driver(d.cuGraphAddMemsetNode, w.out, w.graph, w.before, w.count, &old, context);
    }
    case CU_GRAPH_NODE_TYPE_HOST: {
      const CUDA_HOST_NODE_PARAMS_v1 old{p.host.fn, p.host.userData};
      return call_driver(d.cuGraphAddHostNode, w.out, w.graph, w.before, w.count, &old);
    }
    case CU_GRAPH_NODE_TYPE_GRAPH:
      return call_driver(d.cuGraphAddChildGraphNode, w.out, w.graph, w.before, w.count, p.graph.graph);
    case CU_GRAPH_NODE_TYPE_EMPTY:
      return call_driver(d.cuGraphAddEmptyNode, w.out, w.graph, w.before, w.count);
    case CU_GRAPH_NODE_TYPE_WAIT_EVENT:
      return call_driver(d.cuGraphAddEventWaitNode, w.out, w.graph, w.before, w.count, p.eventWait.event);
    case CU_GRAPH_NODE_TYPE_EVENT_RECORD:
      return call_driver(d.cuGraphAddEventRecordNode, w.out, w.graph, w.before, w.count, p.eventRecord.event);
    case CU_GRAPH_NODE_TYPE_MEM_ALLOC: {
      CUDA_MEM_ALLOC_NODE_PARAMS_v1 old{};
      std::memcpy(&old, &p.alloc, sizeof old);
      const CUresult code = call_driver(d.cuGraphAddMemAllocNode, w.out, w.graph, w.before, w.count, &old);
      p.alloc.dptr = old.dptr;
      return code;
    }
    case CU_GRAPH_NODE_TYPE_MEM_FREE:
      return call_driver(d.cuGraphAddMemFreeNode, w.out, w.graph, w.before, w.count, p.free.dptr);
    case CU_GRAPH_NODE_TYPE_BATCH_MEM_OP: {
      const CUDA_BATCH_MEM_OP_NODE_PARAMS_v1 old{p.memOp.ctx, p.memOp.count, p.memOp.paramArray,
                                                 p.memOp.flags};
      return call_driver(d.cuGraphAddBatchMemOpNode, w.out, w.graph, w.before, w.count, &old);
    }
    default:
      return call_driver(d.cuGraphAddNode_v2, w.out, w.graph, w.before, nullptr, w.count, &p);
  }
}

CUresult set_by_type(const api::driver_table& d, CUgraphNode node, CUgraphNodeParams& p) {
  switch (p.type) {
    case CU_GRAPH_NODE_TYPE_KERNEL: {
      CUDA_KERNEL_NODE_PARAMS_v2 kernel{};
      std::memcpy(&kernel, &p.kernel, sizeof kernel);
      return call_driver(d.cuGraphKernelNodeSetParams_v2, node, &kernel);
    }
    case CU_GRAPH_NODE_TYPE_MEMCPY:
      return call_driver(d.cuGraphMemcpyNodeSetParams, node, &p.memcpy.copyParams);
    case CU_GRAPH_NODE_TYPE_MEMSET: {
      const CUDA_MEMSET_NODE_PARAMS_v1 old{p.memset.dst,         p.memset.pitch, p.memset.value,
                                           p.memset.elementSize, p.memset.width, p.memset.height};
      return call_driver(d.cuGraphMemsetNodeSetParams, node, &old);
    }
    case CU_GRAPH_NODE_TYPE_HOST: {
      const CUDA_HOST_NODE_PARAMS_v1 old{p.host.fn, p.host.userData};
      return call_driver(d.cuGraphHostNodeSetParams, node, &old);
    }
    case CU_GRAPH_NODE_TYPE_WAIT_EVENT:
      return call_driver(d.cuGraphEventWaitNodeSetEvent, node, p.eventWait.event);
    case CU_GRAPH_NODE_TYPE_EVENT_RECORD:
      return call_driver(d.cuGraphEventRecordNodeSetEvent, node, p.eventRecord.event);
    case CU_GRAPH_NODE_TYPE_BATCH_MEM_OP: {
      const CUDA_BATCH_MEM_OP_NODE_PARAMS_v1 old{p.memOp.ctx, p.memOp.count, p.memOp.paramArray,
                                                 p.memOp.flags};
      return call_driver(d.cuGraphBatchMemOpNodeSetParams, node, &old);
    }
    default:
      return call_driver(d.cuGraphNodeSetParams, node, &p);
  }
}

CUresult set_in_exec(const api::driver_table& d, CUgraphExec exec, CUgraphNode node, CUgraphNodeParams& p) {
  CUcontext current = nullptr;
  d.cuCtxGetCurrent(&current);
  switch (p.type) {
    case CU_GRAPH_NODE_TYPE_KERNEL: {
      CUDA_KERNEL_NODE_PARAMS_v2 kernel{};
      std::memcpy(&kernel, &p.kernel, sizeof kernel);
      return call_driver(d.cuGraphExecKernelNodeSetParams_v2, exec, node, &kernel);
    }
    case CU_GRAPH_NODE_TYPE_MEMCPY:
      return call_driver(d.cuGraphExecMemcpyNodeSetParams, exec, node, &p.memcpy.copyParams,
                         p.memcpy.copyCtx ? p.memcpy.copyCtx : current);
    case CU_GRAPH_NODE_TYPE_MEMSET: {
      const CUDA_MEMSET_NODE_PARAMS_v1 old{p.memset.dst,         p.memset.pitch, p.memset.value,
                                           p.memset.elementSize, p.memset.width, p.memset.height};
      return call_driver(d.cuGraphExecMemsetNodeSetParams, exec, node, &old,
                         p.memset.ctx ? p.memset.ctx : current);
    }
    case CU_GRAPH_NODE_TYPE_HOST: {
      const CUDA_HOST_NODE_PARAMS_v1 old{p.host.fn, p.host.userData};
      return call_driver(d.cuGraphExecHostNodeSetParams, exec, node, &old);
    }
    case CU_GRAPH_NODE_TYPE_GRAPH:
      return call_driver(d.cuGraphExecChildGraphNodeSetParams, exec, node, p.graph.graph);
    case CU_GRAPH_NODE_TYPE_WAIT_EVENT:
      return call_driver(d.cuGraphExecEventWaitNodeSetEvent, exec, node, p.eventWait.event);
    case CU_GRAPH_NODE_TYPE_EVENT_RECORD:
      return call_driver(d.cuGraphExecEventRecordNodeSetEvent, exec, node, p.eventRecord.event);
    case CU_GRAPH_NODE_TYPE_BATCH_MEM_OP: {
      const CUDA_BATCH_MEM_OP_NODE_PARAMS_v1 old{p.memOp.ctx, p.memOp.count, p.memOp.paramArray,
                                                 p.memOp.flags};
      return call_driver(d.cuGraphExecBatchMemOpNodeSetParams, exec, node, &old);
    }
    default:
      return call_driver(d.cuGraphExecNodeSetParams, exec, node, &p);
  }
}

}  // namespace

CUresult native_copy(call& c, const marshal::copy_node& from, CUDA_MEMCPY3D& out,
                     std::vector<boxed_bytes>& blocks) {
  native_node node;
  const CUresult code = to_native(c, from, node);
  out = node.p.memcpy.copyParams;
  blocks = std::move(node.blocks);
  return code;
}

void keep_with_graph(call& c, CUgraph graph, host_calls::function* function) {
  const auto create = c.driver().cuUserObjectCreate;
  const auto retain = c.driver().cuGraphRetainUserObject;
  CUuserObject object = nullptr;
  // Where there are no user objects it lives as long as the session.
  if (!create || !retain ||
      create(&object, function, host_calls::destroyed, 1, CU_USER_OBJECT_NO_DESTRUCTOR_SYNC) != CUDA_SUCCESS)
    return;
  retain(graph, object, 1, CU_GRAPH_USER_OBJECT_MOVE);
}

namespace ends {

outcome cuGraphAddNode_v2(call& c, const marshal::add_node_body& body, marshal::add_node_reply& reply) {
  // In records the id that the node had follows, and its memory must lie where it lay.
  const std::uint64_t wanted = c.body.rest().empty() ? 0 : c.body.get<std::uint64_t>();
  if (!c.body.finished() || !well_formed(body.node)) return outcome::malformed();
  if (!body.edges.empty() && body.edges.size() != body.dependencies.size()) return outcome::malformed();
  CUgraph graph = nullptr;
  CUgraphNode node = nullptr;
  std::vector<CUgraphNode> before;
  native_node native;
  CUresult code = c.refused;
  if (code == CUDA_SUCCESS) code = find(c, body.graph, graph);
  if (code == CUDA_SUCCESS) code = find_all(c, body.dependencies, before);
  if (code == CUDA_SUCCESS) code = to_native(c, body.node, native);
  if (code == CUDA_SUCCESS && native.p.type == CU_GRAPH_NODE_TYPE_MEM_ALLOC) {
    const std::int32_t device = native.p.alloc.poolProps.location.id;
    quota::reservation none;  // the memory is taken when the graph is launched
    code = c.session.limits().admit(device, native.p.alloc.bytesize, none);
    c.session.limits().graph_memory_on(device);
  }
  if (code == CUDA_SUCCESS) {
    const place where{&node, graph, before.data(), before.size()};
    const auto edges = edge_data(body.edges);
    code = edges.empty() ? add_by_type(c.driver(), where, native.p)
                         : call_driver(c.driver().cuGraphAddNode_v2, where.out, graph, before.data(),
                                       edges.data(), before.size(), &native.p);
  }
  if (code != CUDA_SUCCESS) return drop(c, native), outcome::answer(code);
  keep(c, graph, native);
  c.objects().note_change(graph, c.header.ticket);
  if (wanted && !c.objects().mint_as(api::handle_kind::graph_node, node, wanted, graph))
    return outcome::malformed();
  reply.node = name_node(c, node, graph);
  CUgraph child = nullptr;
  if (native.p.type == CU_GRAPH_NODE_TYPE_MEM_ALLOC) reply.address = native.p.alloc.dptr;
  const auto* told = std::get_if<marshal::alloc_node>(&body.node.node);
  if (wanted && told && told->address != reply.address) return outcome::answer(CUDA_ERROR_MAP_FAILED);
  if (native.p.type == CU_GRAPH_NODE_TYPE_GRAPH &&
      call_driver(c.driver().cuGraphChildGraphNodeGetGraph, node, &child) == CUDA_SUCCESS)
    reply.graphs.push_back(name_graph(c, child, graph));
  for (unsigned i = 0; native.p.type == CU_GRAPH_NODE_TYPE_CONDITIONAL && i < native.p.conditional.size;
       ++i) {
    reply.graphs.push_back(name_graph(c, native.p.conditional.phGraph_out[i], graph));
  }
  return outcome::answer(code);
}

outcome cuGraphNodeSetParams(call& c, const marshal::set_node_body& body) {
  if (!well_formed(body.node)) return outcome::malformed();
  CUgraphNode node = nullptr;
  native_node native;
  CUresult code = c.refused;
  if (code == CUDA_SUCCESS) code = find(c, body.handle, node);
  if (code == CUDA_SUCCESS) code = to_native(c, body.node, native);
  if (code == CUDA_SUCCESS) code = set_by_type(c.driver(), node, native.p);
  if (code != CUDA_SUCCESS) return drop(c, native), outcome::answer(code);
  if (void* graph = c.objects().parent_of(body.handle)) keep(c, static_cast<CUgraph>(graph), native);
  note_change_of_node(c, body.handle, c.header.ticket);
  return outcome::answer(code);
}

outcome cuGraphExecNodeSetParams(call& c, const marshal::set_node_body& body,
                                 marshal::instantiate_reply& reply) {
  if (!well_formed(body.node)) return outcome::malformed();
  CUgraphNode node = nullptr;
  CUgraphExec exec = nullptr;
  native_node native;
  CUresult code = c.refused;
  if (code == CUDA_SUCCESS) code = find(c, body.exec, exec);
  if (code == CUDA_SUCCESS) code = find(c, body.handle, node);
  if (code == CUDA_SUCCESS) code = to_native(c, body.node, native);
  if (code == CUDA_SUCCESS) code = set_in_exec(c.driver(), exec, node, native.p);
  if (code != CUDA_SUCCESS) return drop(c, native), outcome::answer(code);
  c.objects().note_change(exec, c.header.ticket);
  exec_needs& needs = *needs_of(c, body.exec);
  if (!change_in_exec(c, body, node, native, needs)) code = CUDA_ERROR_NOT_SUPPORTED;
  reply = needs_reply(needs);
  return outcome::answer(code);
}

}  // namespace ends
}  // namespace outboard::backend
