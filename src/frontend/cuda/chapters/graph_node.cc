// Chapter graph, nodes: made, asked for their parameters, given others.
#include <bit>
#include <cstring>

#include "frontend/cuda/ends.hh"
#include "frontend/cuda/gate.hh"
#include "frontend/cuda/graph_nodes.hh"

namespace outboard::frontend::cuda {
namespace {

struct place {
  CUgraphNode* out;
  CUgraph graph;
  const CUgraphNode* dependencies;
  const CUgraphEdgeData* edges;
  std::size_t count;
};

void forget(const std::vector<std::uint64_t>& made) {
  for (const std::uint64_t id : made) process::instance().functions().forget(id);
}

void name_copies(request& r, const marshal::node_parameters& node) {
  if (node.type == CU_GRAPH_NODE_TYPE_MEMCPY) r.names_copies_alone();
}

struct added {
  std::uint64_t address = 0;
  std::vector<std::uint64_t> graphs;
};

/// `put` fills the parameters.
template <class Put>
CUresult add(lane& own, const place& where, Put&& put, added* more = nullptr) {
  if (!where.out || !graph_ok(where.graph) || (where.count && !where.dependencies) ||
      where.count > marshal::max_graph_edges)
    return CUDA_ERROR_INVALID_VALUE;
  marshal::add_node_body body;
  body.graph = value_of(where.graph);
  for (std::size_t i = 0; i < where.count; ++i) {
    if (!node_ok(where.dependencies[i])) return CUDA_ERROR_INVALID_VALUE;
    body.dependencies.push_back(value_of(where.dependencies[i]));
    if (where.edges) body.edges.push_back(std::bit_cast<std::uint64_t>(where.edges[i]));
  }
  std::vector<std::uint64_t> made;
  if (const CUresult code = put(body.node, made); code != CUDA_SUCCESS) return forget(made), code;
  request_of<api::opcode::cuGraphAddNode_v2> r(own, body);
  name_copies(r, body.node);
  const CUresult code = r.call();
  if (code != CUDA_SUCCESS) return forget(made), code;
  marshal::add_node_reply reply;
  if (const CUresult whole = r.read(reply); whole != CUDA_SUCCESS) return whole;
  *where.out = reinterpret_cast<CUgraphNode>(reply.node);
  if (more) *more = {reply.address, std::move(reply.graphs)};
  return code;
}

/// Only values of the kernel's parameters differ from what the driver took for this node before.
bool is_taken(exec_info& info, std::uint64_t node, const kernel_node_shape& shape) {
  const std::lock_guard lock(info.mutex);
  const auto known = info.taken.find(node);
  return known != info.taken.end() && known->second == shape;
}

/// Notes what the driver has taken for this node. (A graph in the place of a child changes nothing of that:
/// the driver takes none in whose nodes more differs than in these.)
void note_taken(exec_info& info, const marshal::set_node_body& body, const kernel_node_shape& shape) {
  if (body.node.type != CU_GRAPH_NODE_TYPE_KERNEL) return;
  const std::lock_guard lock(info.mutex);
  info.taken[body.handle] = shape;
}

template <class Put>
CUresult set(lane& own, CUgraphNode node, Put&& put) {
  if (!node_ok(node)) return CUDA_ERROR_INVALID_VALUE;
  marshal::set_node_body body;
  body.handle = value_of(node);
  std::vector<std::uint64_t> made;
  CUresult code = put(body.node, made);
  if (code == CUDA_SUCCESS) {
    request_of<api::opcode::cuGraphNodeSetParams> r(own, body);
    name_copies(r, body.node);
    code = r.call();
  }
  if (code != CUDA_SUCCESS) forget(made);
  return code;
}

template <class Put>
CUresult set_in(lane& own, CUgraphExec exec, CUgraphNode node, Put&& put) {
  exec_info* info = find_object<exec_info>(exec);
  if (!info || !node_ok(node)) return CUDA_ERROR_INVALID_VALUE;
  marshal::set_node_body body;
  body.exec = value_of(exec);
  body.handle = value_of(node);
  std::vector<std::uint64_t> made;
  if (const CUresult code = put(body.node, made); code != CUDA_SUCCESS) return forget(made), code;
  request_of<api::opcode::cuGraphExecNodeSetParams> r(own, body);
  name_copies(r, body.node);
  kernel_node_shape shape;
  if (body.node.type == CU_GRAPH_NODE_TYPE_KERNEL) {
    shape = shape_of(own, body.node);
    // What a launch needs of us is copies' and host functions': it stays as it is.
    if (is_taken(*info, body.handle, shape)) return r.post();
  }
  marshal::instantiate_reply needs;
  if (const CUresult code = r.call(needs); code != CUDA_SUCCESS) return forget(made), code;
  info = find_object<exec_info>(exec);  // another thread may have destroyed it meanwhile
  if (info) note_taken(*info, body, shape);
  return learn_needs(std::move(needs), info);
}

/// `take` turns the answer into the program's struct.
template <class Take>
CUresult get(lane& own, CUgraphNode node, CUgraphNodeType type, const void* out, Take&& take) {
  if (!out || !node_ok(node)) return CUDA_ERROR_INVALID_VALUE;
  request_of<api::opcode::cuGraphKernelNodeGetParams_v2> r(
      own, marshal::nodes_body{value_of(node), static_cast<std::uint64_t>(type)});
  marshal::get_node_reply reply;
  if (const CUresult code = r.call(reply); code != CUDA_SUCCESS) return code;
  return take(reply) ? CUDA_SUCCESS : r.malformed();
}

/// The address of an allocation node is the device's: copies must know it for one.
CUresult know_memory(lane& own, std::int32_t device, std::uint64_t address, std::uint64_t size) {
  memory_block block;
  block.base = address, block.size = size;
  block.context = own.context_handle();
  block.device = device;
  return process::instance().memory().insert_graph_memory(block);
}

/// The node is a host function that stands for a copy of the program's own processor.
bool host_copy(lane& own, CUgraphNode node, CUDA_MEMCPY3D& out) {
  bool found = false;
  (void)get(own, node, CU_GRAPH_NODE_TYPE_HOST, &out, [&](const marshal::get_node_reply& reply) {
    if (const CUDA_MEMCPY3D* copy = host_copy_of(reply.node.subject)) out = *copy, found = true;
    return true;
  });
  return found;
}

CUDA_KERNEL_NODE_PARAMS_v2 widened(const CUDA_KERNEL_NODE_PARAMS_v1& p) {
  CUDA_KERNEL_NODE_PARAMS_v2 out{};
  std::memcpy(&out, &p, sizeof p);  // v2 appends
  return out;
}
CUDA_MEMSET_NODE_PARAMS_v2 widened(const CUDA_MEMSET_NODE_PARAMS_v1& p, CUcontext context) {
  return {p.dst, p.pitch, p.value, p.elementSize, p.width, p.height, context};
}

}  // namespace

bool is_host_copy(lane& own, CUgraphNode node) {
  CUDA_MEMCPY3D copy{};
  return host_copy(own, node, copy);
}

CUresult learn_needs(marshal::instantiate_reply&& reply, exec_info* info) {
  if (!info) return CUDA_ERROR_INVALID_VALUE;
  const std::lock_guard lock(info->mutex);
  info->sources = std::move(reply.sources);
  info->targets = std::move(reply.targets);
  info->functions = reply.functions;
  return CUDA_SUCCESS;
}

namespace ends {

using ids = std::vector<std::uint64_t>;

#define OUTBOARD_PLACE CUgraphNode *out, CUgraph graph, const CUgraphNode *before, std::size_t count
#define OUTBOARD_GATE(symbol) \
  lane& own = this_lane();    \
  if (const CUresult refused = gate<api::opcode::symbol>(own); refused != CUDA_SUCCESS) return refused
/// An end that adds: `pointer` must not be null; the expression fills `to`.
#define OUTBOARD_ADD(symbol, pointer, expression)       \
  OUTBOARD_GATE(symbol);                                \
  if (!(pointer)) return CUDA_ERROR_INVALID_VALUE;      \
  return add(own, {out, graph, before, nullptr, count}, \
             [&]([[maybe_unused]] node_parameters& to, [[maybe_unused]] ids& made) { return expression; })
#define OUTBOARD_SET(symbol, pointer, exec, expression)                                                  \
  OUTBOARD_GATE(symbol);                                                                                 \
  if (!(pointer)) return CUDA_ERROR_INVALID_VALUE;                                                       \
  return set_in(own, exec, node, [&]([[maybe_unused]] node_parameters& to, [[maybe_unused]] ids& made) { \
    return expression;                                                                                   \
  })
#define OUTBOARD_SET_NODE(symbol, pointer, expression) \
  OUTBOARD_GATE(symbol);                               \
  if (!(pointer)) return CUDA_ERROR_INVALID_VALUE;     \
  return set(own, node,                                \
             [&]([[maybe_unused]] node_parameters& to, [[maybe_unused]] ids& made) { return expression; })
#define OUTBOARD_GET(symbol, type, pointer, expression) \
  OUTBOARD_GATE(symbol);                                \
  return get(own, node, type, pointer, [&](const marshal::get_node_reply& reply) { return expression; })

// kernels
CUresult cuGraphAddKernelNode_v2(OUTBOARD_PLACE, const CUDA_KERNEL_NODE_PARAMS_v2* p) {
  OUTBOARD_ADD(cuGraphAddKernelNode_v2, p, put_kernel(own, *p, to));
}
CUresult cuGraphAddKernelNode(OUTBOARD_PLACE, const CUDA_KERNEL_NODE_PARAMS_v1* p) {
  OUTBOARD_ADD(cuGraphAddKernelNode, p, put_kernel(own, widened(*p), to));
}
CUresult cuGraphKernelNodeSetParams_v2(CUgraphNode node, const CUDA_KERNEL_NODE_PARAMS_v2* p) {
  OUTBOARD_SET_NODE(cuGraphKernelNodeSetParams_v2, p, put_kernel(own, *p, to));
}
CUresult cuGraphKernelNodeSetParams(CUgraphNode node, const CUDA_KERNEL_NODE_PARAMS_v1* p) {
  OUTBOARD_SET_NODE(cuGraphKernelNodeSetParams, p, put_kernel(own, widened(*p), to));
}
CUresult cuGraphExecKernelNodeSetParams_v2(CUgraphExec exec, CUgraphNode node,
                                           const CUDA_KERNEL_NODE_PARAMS_v2* p) {
  OUTBOARD_SET(cuGraphExecKernelNodeSetParams_v2, p, exec, put_kernel(own, *p, to));
}
CUresult cuGraphExecKernelNodeSetParams(CUgraphExec exec, CUgraphNode node,
                                        const CUDA_KERNEL_NODE_PARAMS_v1* p) {
  OUTBOARD_SET(cuGraphExecKernelNodeSetParams, p, exec, put_kernel(own, widened(*p), to));
}
CUresult cuGraphKernelNodeGetParams_v2(CUgraphNode node, CUDA_KERNEL_NODE_PARAMS_v2* p) {
  OUTBOARD_GET(cuGraphKernelNodeGetParams_v2, CU_GRAPH_NODE_TYPE_KERNEL, p,
               take_kernel(node, reply.graph, reply.node, *p));
}
CUresult cuGraphKernelNodeGetParams(CUgraphNode node, CUDA_KERNEL_NODE_PARAMS_v1* p) {
  CUDA_KERNEL_NODE_PARAMS_v2 wide{};
  const CUresult code = ends::cuGraphKernelNodeGetParams_v2(node, p ? &wide : nullptr);
  if (code != CUDA_SUCCESS) return code;
  if (!wide.func) wide.func = reinterpret_cast<CUfunction>(wide.kern);
  std::memcpy(p, &wide, sizeof *p);
  return code;
}

// copies and fills
CUresult cuGraphAddMemcpyNode(OUTBOARD_PLACE, const CUDA_MEMCPY3D* p, CUcontext context) {
  OUTBOARD_ADD(cuGraphAddMemcpyNode, p, put_copy(*p, context, to, made));
}
CUresult cuGraphMemcpyNodeSetParams(CUgraphNode node, const CUDA_MEMCPY3D* p) {
  OUTBOARD_SET_NODE(cuGraphMemcpyNodeSetParams, p, put_copy(*p, nullptr, to, made));
}
CUresult cuGraphExecMemcpyNodeSetParams(CUgraphExec exec, CUgraphNode node, const CUDA_MEMCPY3D* p,
                                        CUcontext context) {
  OUTBOARD_SET(cuGraphExecMemcpyNodeSetParams, p, exec, put_copy(*p, context, to, made));
}
CUresult cuGraphMemcpyNodeGetParams(CUgraphNode node, CUDA_MEMCPY3D* p) {
  OUTBOARD_GATE(cuGraphMemcpyNodeGetParams);
  const CUresult code = get(own, node, CU_GRAPH_NODE_TYPE_MEMCPY, p,
                            [&](const marshal::get_node_reply& reply) { return take_copy(reply.node, *p); });
  CUDA_MEMCPY3D on_host{};
  if (code != CUDA_ERROR_INVALID_VALUE || !p || !host_copy(own, node, on_host)) return code;
  return *p = on_host, CUDA_SUCCESS;
}

CUresult cuGraphAddMemsetNode(OUTBOARD_PLACE, const CUDA_MEMSET_NODE_PARAMS_v1* p, CUcontext context) {
  OUTBOARD_ADD(cuGraphAddMemsetNode, p, put_fill(widened(*p, context), to));
}
CUresult cuGraphMemsetNodeSetParams(CUgraphNode node, const CUDA_MEMSET_NODE_PARAMS_v1* p) {
  OUTBOARD_SET_NODE(cuGraphMemsetNodeSetParams, p, put_fill(widened(*p, nullptr), to));
}
CUresult cuGraphExecMemsetNodeSetParams(CUgraphExec exec, CUgraphNode node,
                                        const CUDA_MEMSET_NODE_PARAMS_v1* p, CUcontext context) {
  OUTBOARD_SET(cuGraphExecMemsetNodeSetParams, p, exec, put_fill(widened(*p, context), to));
}
CUresult cuGraphMemsetNodeGetParams(CUgraphNode node, CUDA_MEMSET_NODE_PARAMS_v1* p) {
  OUTBOARD_GATE(cuGraphMemsetNodeGetParams);
  CUDA_MEMSET_NODE_PARAMS_v2 wide{};
  const CUresult code =
      get(own, node, CU_GRAPH_NODE_TYPE_MEMSET, p,
          [&](const marshal::get_node_reply& reply) { return take_fill(reply.node, wide); });
  if (code == CUDA_SUCCESS)
    *p = {wide.dst, wide.pitch, wide.value, wide.elementSize, wide.width, wide.height};
  return code;
}

// host functions, child graphs, nothing, events
CUresult cuGraphAddHostNode(OUTBOARD_PLACE, const CUDA_HOST_NODE_PARAMS_v1* p) {
  OUTBOARD_ADD(cuGraphAddHostNode, p, put_host(p->fn, p->userData, to, made));
}
CUresult cuGraphHostNodeSetParams(CUgraphNode node, const CUDA_HOST_NODE_PARAMS_v1* p) {
  OUTBOARD_SET_NODE(cuGraphHostNodeSetParams, p, put_host(p->fn, p->userData, to, made));
}
CUresult cuGraphExecHostNodeSetParams(CUgraphExec exec, CUgraphNode node, const CUDA_HOST_NODE_PARAMS_v1* p) {
  OUTBOARD_SET(cuGraphExecHostNodeSetParams, p, exec, put_host(p->fn, p->userData, to, made));
}
CUresult cuGraphHostNodeGetParams(CUgraphNode node, CUDA_HOST_NODE_PARAMS_v1* p) {
  OUTBOARD_GATE(cuGraphHostNodeGetParams);
  bool is_function = false;
  const CUresult code = get(own, node, CU_GRAPH_NODE_TYPE_HOST, p, [&](const marshal::get_node_reply& reply) {
    is_function = take_host(reply.node, *p);
    return is_function || host_copy_of(reply.node.subject);
  });
  return code == CUDA_SUCCESS && !is_function ? CUDA_ERROR_INVALID_VALUE : code;
}

CUresult cuGraphAddChildGraphNode(OUTBOARD_PLACE, CUgraph child) {
  OUTBOARD_ADD(cuGraphAddChildGraphNode, true, put_child(child, to));
}
CUresult cuGraphExecChildGraphNodeSetParams(CUgraphExec exec, CUgraphNode node, CUgraph child) {
  OUTBOARD_SET(cuGraphExecChildGraphNodeSetParams, true, exec, put_child(child, to));
}
CUresult cuGraphChildGraphNodeGetGraph(CUgraphNode node, CUgraph* child) {
  OUTBOARD_GET(cuGraphChildGraphNodeGetGraph, CU_GRAPH_NODE_TYPE_GRAPH, child,
               (*child = reinterpret_cast<CUgraph>(reply.node.subject), true));
}
CUresult cuGraphAddEmptyNode(OUTBOARD_PLACE) {
  OUTBOARD_ADD(cuGraphAddEmptyNode, true, (to.type = CU_GRAPH_NODE_TYPE_EMPTY, CUDA_SUCCESS));
}

CUresult cuGraphAddEventRecordNode(OUTBOARD_PLACE, CUevent event) {
  OUTBOARD_ADD(cuGraphAddEventRecordNode, true, put_event(CU_GRAPH_NODE_TYPE_EVENT_RECORD, event, to));
}
CUresult cuGraphEventRecordNodeSetEvent(CUgraphNode node, CUevent event) {
  OUTBOARD_SET_NODE(cuGraphEventRecordNodeSetEvent, true,
                    put_event(CU_GRAPH_NODE_TYPE_EVENT_RECORD, event, to));
}
CUresult cuGraphExecEventRecordNodeSetEvent(CUgraphExec exec, CUgraphNode node, CUevent event) {
  OUTBOARD_SET(cuGraphExecEventRecordNodeSetEvent, true, exec,
               put_event(CU_GRAPH_NODE_TYPE_EVENT_RECORD, event, to));
}
CUresult cuGraphEventRecordNodeGetEvent(CUgraphNode node, CUevent* event) {
  OUTBOARD_GET(cuGraphEventRecordNodeGetEvent, CU_GRAPH_NODE_TYPE_EVENT_RECORD, event,
               (*event = reinterpret_cast<CUevent>(reply.node.subject), true));
}
CUresult cuGraphAddEventWaitNode(OUTBOARD_PLACE, CUevent event) {
  OUTBOARD_ADD(cuGraphAddEventWaitNode, true, put_event(CU_GRAPH_NODE_TYPE_WAIT_EVENT, event, to));
}
CUresult cuGraphEventWaitNodeSetEvent(CUgraphNode node, CUevent event) {
  OUTBOARD_SET_NODE(cuGraphEventWaitNodeSetEvent, true, put_event(CU_GRAPH_NODE_TYPE_WAIT_EVENT, event, to));
}
CUresult cuGraphExecEventWaitNodeSetEvent(CUgraphExec exec, CUgraphNode node, CUevent event) {
  OUTBOARD_SET(cuGraphExecEventWaitNodeSetEvent, true, exec,
               put_event(CU_GRAPH_NODE_TYPE_WAIT_EVENT, event, to));
}
CUresult cuGraphEventWaitNodeGetEvent(CUgraphNode node, CUevent* event) {
  OUTBOARD_GET(cuGraphEventWaitNodeGetEvent, CU_GRAPH_NODE_TYPE_WAIT_EVENT, event,
               (*event = reinterpret_cast<CUevent>(reply.node.subject), true));
}

// memory
CUresult cuGraphAddBatchMemOpNode(OUTBOARD_PLACE, const CUDA_BATCH_MEM_OP_NODE_PARAMS_v1* p) {
  OUTBOARD_ADD(cuGraphAddBatchMemOpNode, p, put_operations(p->ctx, p->paramArray, p->count, p->flags, to));
}
CUresult cuGraphBatchMemOpNodeSetParams(CUgraphNode node, const CUDA_BATCH_MEM_OP_NODE_PARAMS_v1* p) {
  OUTBOARD_SET_NODE(cuGraphBatchMemOpNodeSetParams, p,
                    put_operations(p->ctx, p->paramArray, p->count, p->flags, to));
}
CUresult cuGraphExecBatchMemOpNodeSetParams(CUgraphExec exec, CUgraphNode node,
                                            const CUDA_BATCH_MEM_OP_NODE_PARAMS_v1* p) {
  OUTBOARD_SET(cuGraphExecBatchMemOpNodeSetParams, p, exec,
               put_operations(p->ctx, p->paramArray, p->count, p->flags, to));
}
CUresult cuGraphBatchMemOpNodeGetParams(CUgraphNode node, CUDA_BATCH_MEM_OP_NODE_PARAMS_v1* p) {
  OUTBOARD_GET(cuGraphBatchMemOpNodeGetParams, CU_GRAPH_NODE_TYPE_BATCH_MEM_OP, p,
               take_operations(node, reply.graph, reply.node, *p));
}

CUresult cuGraphAddMemAllocNode(OUTBOARD_PLACE, CUDA_MEM_ALLOC_NODE_PARAMS_v1* p) {
  OUTBOARD_GATE(cuGraphAddMemAllocNode);
  if (!p) return CUDA_ERROR_INVALID_VALUE;
  CUDA_MEM_ALLOC_NODE_PARAMS_v2 wide{};
  static_assert(sizeof wide == sizeof *p);
  std::memcpy(&wide, p, sizeof wide);
  added more;
  const CUresult code = add(
      own, {out, graph, before, nullptr, count},
      [&](node_parameters& to, ids&) { return put_allocation(wide, to); }, &more);
  if (code != CUDA_SUCCESS) return code;
  p->dptr = more.address;
  return know_memory(own, wide.poolProps.location.id, more.address, p->bytesize);
}
CUresult cuGraphMemAllocNodeGetParams(CUgraphNode node, CUDA_MEM_ALLOC_NODE_PARAMS_v1* p) {
  OUTBOARD_GET(
      cuGraphMemAllocNodeGetParams, CU_GRAPH_NODE_TYPE_MEM_ALLOC, p,
      take_allocation(node, reply.graph, reply.node, *reinterpret_cast<CUDA_MEM_ALLOC_NODE_PARAMS_v2*>(p)));
}
CUresult cuGraphAddMemFreeNode(OUTBOARD_PLACE, CUdeviceptr address) {
  OUTBOARD_ADD(cuGraphAddMemFreeNode, address,
               (to.type = CU_GRAPH_NODE_TYPE_MEM_FREE, to.subject = address, CUDA_SUCCESS));
}
CUresult cuGraphMemFreeNodeGetParams(CUgraphNode node, CUdeviceptr* address) {
  OUTBOARD_GET(cuGraphMemFreeNodeGetParams, CU_GRAPH_NODE_TYPE_MEM_FREE, address,
               (*address = reply.node.subject, true));
}

// any kind
CUresult cuGraphAddNode_v2(CUgraphNode* out, CUgraph graph, const CUgraphNode* before,
                           const CUgraphEdgeData* edges, std::size_t count, CUgraphNodeParams* p) {
  OUTBOARD_GATE(cuGraphAddNode_v2);
  if (!p) return CUDA_ERROR_INVALID_VALUE;
  added more;
  const CUresult code = add(
      own, {out, graph, before, edges, count},
      [&](node_parameters& to, ids& made) { return put_any(own, *p, to, made); }, &more);
  if (code != CUDA_SUCCESS) return code;
  if (p->type == CU_GRAPH_NODE_TYPE_MEM_ALLOC) {
    p->alloc.dptr = more.address;
    return know_memory(own, p->alloc.poolProps.location.id, more.address, p->alloc.bytesize);
  }
  if (p->type == CU_GRAPH_NODE_TYPE_GRAPH && !more.graphs.empty()) {
    p->graph.graph = reinterpret_cast<CUgraph>(more.graphs[0]);
  }
  return p->type == CU_GRAPH_NODE_TYPE_CONDITIONAL ? keep_bodies(*out, more.graphs, *p) : code;
}
CUresult cuGraphAddNode(OUTBOARD_PLACE, CUgraphNodeParams* p) {
  return ends::cuGraphAddNode_v2(out, graph, before, nullptr, count, p);
}
CUresult cuGraphNodeSetParams(CUgraphNode node, CUgraphNodeParams* p) {
  OUTBOARD_GATE(cuGraphNodeSetParams);
  if (!p) return CUDA_ERROR_INVALID_VALUE;
  const CUresult code =
      set(own, node, [&](node_parameters& to, ids& made) { return put_any(own, *p, to, made); });
  CUgraphNodeType type{};
  // Of what is wrong with parameters for another type of node the driver sees nothing.
  const bool other = code == CUDA_ERROR_INVALID_HANDLE &&
                     ends::cuGraphNodeGetType(node, &type) == CUDA_SUCCESS && type != p->type;
  return other ? CUDA_ERROR_INVALID_VALUE : code;
}
CUresult cuGraphExecNodeSetParams(CUgraphExec exec, CUgraphNode node, CUgraphNodeParams* p) {
  OUTBOARD_SET(cuGraphExecNodeSetParams, p, exec, put_any(own, *p, to, made));
}

}  // namespace ends
}  // namespace outboard::frontend::cuda
