// Handlers of the chapter graph about nodes: the client's description into the driver's parameters and back.
#include <bit>
#include <cstring>

#include "backend/cuda/ends.hh"
#include "backend/cuda/graph/graph_handles.hh"

namespace outboard::backend {
namespace {

using marshal::node_parameters;

constexpr std::size_t copy_side = 10, copy_numbers = 2 * copy_side + 3;

/// The driver's parameters of one node, and what they point to.
struct native_node {
  CUgraphNodeParams p{};
  std::size_t parameter_bytes = 0;
  void* extra[5] = {};
  std::vector<CUmemAccessDesc> access;
  std::vector<CUstreamBatchMemOpParams> operations;
  host_calls::function* function = nullptr;  ///< ours until the driver has it
  copy_blocks blocks;                        ///< the same
};

CUresult find_context(call& c, std::uint64_t id, CUcontext& out) {
  out = nullptr;
  return id ? c.objects().resolve(id, out) : CUDA_SUCCESS;
}

CUresult to_kernel(call& c, const node_parameters& from, native_node& to) {
  CUDA_KERNEL_NODE_PARAMS_v3& p = to.p.kernel;
  CUfunction function = nullptr;
  if (const CUresult code = c.objects().resolve(from.subject, function); code != CUDA_SUCCESS) return code;
  if (const CUresult code = find_context(c, from.context, p.ctx); code != CUDA_SUCCESS) return code;
  wire::frame_header where = c.header;
  if (from.context) where.context = from.context;
  c.session.uses().of_kernel(c.objects(), from.subject, where);
  const bool kernel =
      wire::handle{from.subject}.kind() == static_cast<std::uint8_t>(api::handle_kind::kernel);
  if (kernel) {
    p.kern = reinterpret_cast<CUkernel>(function);
  } else {
    p.func = function;
  }
  p.gridDimX = from.grid[0], p.gridDimY = from.grid[1], p.gridDimZ = from.grid[2];
  p.blockDimX = from.block[0], p.blockDimY = from.block[1], p.blockDimZ = from.block[2];
  p.sharedMemBytes = from.shared;
  to.parameter_bytes = from.bytes.size();
  void* list[] = {CU_LAUNCH_PARAM_BUFFER_POINTER, const_cast<std::uint8_t*>(from.bytes.data()),
                  CU_LAUNCH_PARAM_BUFFER_SIZE, &to.parameter_bytes, CU_LAUNCH_PARAM_END};
  std::memcpy(to.extra, list, sizeof list);
  if (to.parameter_bytes) p.extra = to.extra;
  return CUDA_SUCCESS;
}

/// Page-locked memory that the client names as a device does is the host's to the driver: else it would not
/// let one copy of an executable graph change between such memory and a block. Only what the driver knows for
/// page-locked becomes a host address here.
const void* locked_at(call& c, CUdeviceptr address) {
  unsigned type = 0;
  void* host = nullptr;
  const auto ask = [&](void* out, CUpointer_attribute what) {
    return address && call_driver(c.driver().cuPointerGetAttribute, out, what, address) == CUDA_SUCCESS;
  };
  return ask(&type, CU_POINTER_ATTRIBUTE_MEMORY_TYPE) && type == CU_MEMORYTYPE_HOST &&
                 ask(&host, CU_POINTER_ATTRIBUTE_HOST_POINTER)
             ? host
             : nullptr;
}

/// One end of a copy; `n` are its numbers. A host box becomes a block here.
CUresult to_side(call& c, const std::uint64_t* n, const std::uint64_t* shape,
                 std::optional<boxed_bytes>& block, CUdeviceptr& device, CUarray& array) {
  if (n[5]) {
    std::uint64_t size = 0;
    if (__builtin_mul_overflow(shape[0], shape[1], &size) || __builtin_mul_overflow(size, shape[2], &size))
      return CUDA_ERROR_INVALID_VALUE;
    block = c.session.captured_copies().make({n[5], size, shape[0], c.header.context});
    if (!block) return CUDA_ERROR_OUT_OF_MEMORY;
  }
  device = n[6];
  return n[7] ? c.objects().resolve(n[7], array) : CUDA_SUCCESS;
}

bool memory_type(std::uint64_t number, bool host, CUmemorytype& out) {
  out = host ? CU_MEMORYTYPE_HOST : static_cast<CUmemorytype>(number);
  // An address of this process that a peer chose would be read or written: only blocks of ours are host
  // memory.
  return host || number == CU_MEMORYTYPE_DEVICE || number == CU_MEMORYTYPE_ARRAY;
}

CUresult to_copy(call& c, const node_parameters& from, native_node& to) {
  const std::uint64_t* n = from.numbers.data();
  const std::uint64_t* shape = n + 2 * copy_side;
  CUDA_MEMCPY3D& p = to.p.memcpy.copyParams;
  if (const CUresult code = find_context(c, from.context, to.p.memcpy.copyCtx); code != CUDA_SUCCESS)
    return code;
  if (!memory_type(n[4], n[5] != 0, p.srcMemoryType) ||
      !memory_type(n[copy_side + 4], n[copy_side + 5] != 0, p.dstMemoryType))
    return CUDA_ERROR_INVALID_VALUE;
  copy_blocks& blocks = to.blocks;
  p.srcXInBytes = n[0], p.srcY = n[1], p.srcZ = n[2], p.srcLOD = n[3], p.srcPitch = n[8], p.srcHeight = n[9];
  CUresult code = to_side(c, n, shape, blocks.source, p.srcDevice, p.srcArray);
  if (blocks.source) p.srcHost = blocks.source->data;
  if (const void* host = p.srcMemoryType == CU_MEMORYTYPE_DEVICE ? locked_at(c, p.srcDevice) : nullptr)
    p.srcMemoryType = CU_MEMORYTYPE_HOST, p.srcHost = host, p.srcDevice = 0;
  n += copy_side;
  p.dstXInBytes = n[0], p.dstY = n[1], p.dstZ = n[2], p.dstLOD = n[3], p.dstPitch = n[8], p.dstHeight = n[9];
  if (code == CUDA_SUCCESS) code = to_side(c, n, shape, blocks.target, p.dstDevice, p.dstArray);
  if (blocks.target) p.dstHost = blocks.target->data;
  if (const void* host = p.dstMemoryType == CU_MEMORYTYPE_DEVICE ? locked_at(c, p.dstDevice) : nullptr)
    p.dstMemoryType = CU_MEMORYTYPE_HOST, p.dstHost = const_cast<void*>(host), p.dstDevice = 0;
  p.WidthInBytes = shape[0], p.Height = shape[1], p.Depth = shape[2];
  return code;
}

CUresult to_allocation(const node_parameters& from, native_node& to) {
  const std::uint64_t* n = from.numbers.data();
  CUDA_MEM_ALLOC_NODE_PARAMS_v2& p = to.p.alloc;
  p.poolProps.allocType = static_cast<CUmemAllocationType>(n[0]);
  p.poolProps.handleTypes = static_cast<CUmemAllocationHandleType>(n[1]);
  p.poolProps.location = {static_cast<CUmemLocationType>(n[2]), static_cast<int>(n[3])};
  p.poolProps.maxSize = n[4];
  p.poolProps.usage = static_cast<unsigned short>(n[5]);
  p.bytesize = n[6];
  to.access.resize(from.bytes.size() / sizeof(CUmemAccessDesc));
  if (!to.access.empty())
    std::memcpy(to.access.data(), from.bytes.data(), to.access.size() * sizeof to.access[0]);
  p.accessDescs = to.access.empty() ? nullptr : to.access.data();
  p.accessDescCount = to.access.size();
  return CUDA_SUCCESS;
}

/// Do numbers and bytes have the sizes that the type says?
bool well_formed(const node_parameters& from) {
  const std::size_t numbers = from.numbers.size(), bytes = from.bytes.size();
  switch (from.type) {
    case CU_GRAPH_NODE_TYPE_KERNEL:
      return numbers == 0 && bytes <= marshal::max_parameter_bytes;
    case CU_GRAPH_NODE_TYPE_MEMCPY:
      return numbers == copy_numbers && bytes == 0;
    case CU_GRAPH_NODE_TYPE_MEMSET:
      return numbers == 6 && bytes == 0;
    case CU_GRAPH_NODE_TYPE_MEM_ALLOC:
      return numbers == 8 && bytes % sizeof(CUmemAccessDesc) == 0 && bytes <= 64 * sizeof(CUmemAccessDesc);
    case CU_GRAPH_NODE_TYPE_BATCH_MEM_OP:
      return numbers == 1 && bytes % sizeof(CUstreamBatchMemOpParams) == 0 &&
             bytes <= 256 * sizeof(CUstreamBatchMemOpParams);
    case CU_GRAPH_NODE_TYPE_CONDITIONAL:
      return numbers == 2 && bytes == 0 && from.numbers[1] <= 1024;
    default:
      return numbers == 0 && bytes == 0;
  }
}

CUresult to_native(call& c, const node_parameters& from, native_node& to) {
  to.p.type = static_cast<CUgraphNodeType>(from.type);
  const std::uint64_t* n = from.numbers.data();
  switch (to.p.type) {
    case CU_GRAPH_NODE_TYPE_KERNEL:
      return to_kernel(c, from, to);
    case CU_GRAPH_NODE_TYPE_MEMCPY:
      return to_copy(c, from, to);
    case CU_GRAPH_NODE_TYPE_MEMSET:
      to.p.memset = {n[0], n[1],   static_cast<unsigned>(n[2]), static_cast<unsigned>(n[3]), n[4],
                     n[5], nullptr};
      return find_context(c, from.context, to.p.memset.ctx);
    case CU_GRAPH_NODE_TYPE_HOST:
      to.function = c.session.host().make(from.subject, false);
      to.p.host = {host_calls::run, to.function};
      return CUDA_SUCCESS;
    case CU_GRAPH_NODE_TYPE_GRAPH:
      return find(c, from.subject, to.p.graph.graph);
    case CU_GRAPH_NODE_TYPE_EMPTY:
      return CUDA_SUCCESS;
    case CU_GRAPH_NODE_TYPE_WAIT_EVENT:
      return c.objects().resolve(from.subject, to.p.eventWait.event);
    case CU_GRAPH_NODE_TYPE_EVENT_RECORD:
      return c.objects().resolve(from.subject, to.p.eventRecord.event);
    case CU_GRAPH_NODE_TYPE_MEM_ALLOC:
      return to_allocation(from, to);
    case CU_GRAPH_NODE_TYPE_MEM_FREE:
      return to.p.free.dptr = from.subject, CUDA_SUCCESS;
    case CU_GRAPH_NODE_TYPE_BATCH_MEM_OP:
      to.operations.resize(from.bytes.size() / sizeof(CUstreamBatchMemOpParams));
      if (!to.operations.empty()) std::memcpy(to.operations.data(), from.bytes.data(), from.bytes.size());
      to.p.memOp = {nullptr, static_cast<unsigned>(to.operations.size()), to.operations.data(),
                    static_cast<unsigned>(n[0])};
      return find_context(c, from.context, to.p.memOp.ctx);
    case CU_GRAPH_NODE_TYPE_CONDITIONAL:
      to.p.conditional.handle = from.subject;
      to.p.conditional.type = static_cast<CUgraphConditionalNodeType>(n[0]);
      to.p.conditional.size = static_cast<unsigned>(n[1]);
      return find_context(c, from.context, to.p.conditional.ctx);
    default:
      return CUDA_ERROR_NOT_SUPPORTED;
  }
}

/// What the driver did not take goes.
void drop(call& c, native_node& n) {
  delete n.function;
  for (const boxed_bytes& b : n.blocks.all()) c.session.captured_copies().release(b);
}

/// What it took lives as long as the graph.
void keep(call& c, CUgraph graph, native_node& n) {
  if (n.function) keep_with_graph(c, graph, n.function);
  for (const boxed_bytes& b : n.blocks.all()) c.session.captured_copies().hold(graph, b);
}

/// Do launches need other bytes of the client once the node has these parameters? Only then the graph has to
/// be walked again.
bool changes_needs(call& c, const node_parameters& from) {
  return (from.type == CU_GRAPH_NODE_TYPE_MEMCPY || from.type == CU_GRAPH_NODE_TYPE_HOST) &&
         c.session.captured_copies().any();
}

/// Another graph in the place of a child is not walked: it may be changed or gone when that is needed again.
bool child_needs_nothing(call& c, const native_node& n, const exec_needs& needs) {
  return n.p.type != CU_GRAPH_NODE_TYPE_GRAPH ||
         (needs.sources.empty() && needs.targets.empty() && needs.silent.empty() &&
          !has_blocks(c.driver(), c.session.captured_copies(), n.p.graph.graph));
}

/// No user object can be given to an executable graph: it keeps what changes in it alone until it is
/// destroyed.
void change_in_exec(CUgraphNode node, const native_node& n, exec_changes& changed) {
  if (n.function) {
    if (host_calls::function* old = std::exchange(changed.functions[node], n.function))
      changed.old_functions.push_back(old);
  }
  // Also one without blocks: those of the graph's own node are not this graph's any more.
  if (n.p.type == CU_GRAPH_NODE_TYPE_MEMCPY) changed.retire(std::exchange(changed.copies[node], n.blocks));
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

bool is_copy(const node_parameters& from) {
  return from.type == CU_GRAPH_NODE_TYPE_MEMCPY && well_formed(from);
}

CUresult native_copy(call& c, const node_parameters& from, CUDA_MEMCPY3D& out, copy_blocks& blocks) {
  native_node node;
  const CUresult code = to_copy(c, from, node);
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

bool can_be_learned(call& c, const exec_needs& needs) {
  CUgraph graph = nullptr;
  return needs.graph_id && find(c, needs.graph_id, graph) == CUDA_SUCCESS && graph == needs.graph &&
         c.objects().last_change(graph) == needs.change;
}

namespace ends {

outcome cuGraphAddNode_v2(call& c) {
  auto body = marshal::take_body<marshal::add_node_body>(c.body);
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
    code = c.session.limits().admit(device, native.p.alloc.bytesize);
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
  marshal::add_node_reply reply;
  if (wanted && !c.objects().mint_as(api::handle_kind::graph_node, node, wanted, graph))
    return outcome::malformed();
  reply.node = name_node(c, node, graph);
  CUgraph child = nullptr;
  if (native.p.type == CU_GRAPH_NODE_TYPE_MEM_ALLOC) reply.address = native.p.alloc.dptr;
  if (wanted && native.p.type == CU_GRAPH_NODE_TYPE_MEM_ALLOC && body.node.numbers[7] != reply.address)
    return outcome::answer(CUDA_ERROR_MAP_FAILED);
  if (native.p.type == CU_GRAPH_NODE_TYPE_GRAPH &&
      call_driver(c.driver().cuGraphChildGraphNodeGetGraph, node, &child) == CUDA_SUCCESS)
    reply.graphs.push_back(name_graph(c, child, graph));
  for (unsigned i = 0; native.p.type == CU_GRAPH_NODE_TYPE_CONDITIONAL && i < native.p.conditional.size;
       ++i) {
    reply.graphs.push_back(name_graph(c, native.p.conditional.phGraph_out[i], graph));
  }
  marshal::put_body(c.reply, reply);
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

outcome cuGraphExecNodeSetParams(call& c, const marshal::set_node_body& body) {
  if (!well_formed(body.node)) return outcome::malformed();
  CUgraphNode node = nullptr;
  CUgraphExec exec = nullptr;
  native_node native;
  CUresult code = c.refused;
  if (code == CUDA_SUCCESS) code = find(c, body.exec, exec);
  if (code == CUDA_SUCCESS) code = find(c, body.handle, node);
  if (code == CUDA_SUCCESS) code = to_native(c, body.node, native);
  if (code != CUDA_SUCCESS) return drop(c, native), outcome::answer(code);
  exec_needs& needs = *needs_of(c, body.exec);
  const bool learn = changes_needs(c, body.node);
  if ((learn && !can_be_learned(c, needs)) || !child_needs_nothing(c, native, needs))
    code = CUDA_ERROR_NOT_SUPPORTED;
  if (code == CUDA_SUCCESS) code = set_in_exec(c.driver(), exec, node, native.p);
  if (code != CUDA_SUCCESS) return drop(c, native), outcome::answer(code);
  c.objects().note_change(exec, c.header.ticket);
  change_in_exec(node, native, needs.changed);
  if (learn && !learn_change({c.driver(), c.session.captured_copies(), exec}, needs))
    code = CUDA_ERROR_NOT_SUPPORTED;
  if (last_is_over(c.driver(), needs)) drop_old(c, needs.changed);
  marshal::put_body(c.reply, needs_reply(needs));
  return outcome::answer(code);
}

}  // namespace ends
}  // namespace outboard::backend
