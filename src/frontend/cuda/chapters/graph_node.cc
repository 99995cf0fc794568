// Chapter graph, nodes: made, asked for their parameters, given others.
#include <bit>
#include <cstring>

#include "frontend/cuda/ends.hh"
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

void forget(const lane& own, const std::vector<std::uint64_t>& made) {
  for (const std::uint64_t id : made) own.state().functions.forget(id);
}

struct added {
  std::uint64_t address = 0;
  std::vector<std::uint64_t> graphs;
};

/// `put` fills the parameters.
template <class Put>
CUresult add(lane& own, const place& where, Put&& put, added* more = nullptr) {
  if (!where.out || !graph_ok(own, where.graph) || (where.count && !where.dependencies) ||
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
  CUresult code = put(body.node, made);
  marshal::add_node_reply reply;
  if (code == CUDA_SUCCESS) code = call<api::opcode::cuGraphAddNode_v2>(own, body, reply);
  if (code != CUDA_SUCCESS) return forget(own, made), code;
  *where.out = reinterpret_cast<CUgraphNode>(reply.node);
  if (more) *more = {reply.address, std::move(reply.graphs)};
  return code;
}

template <class Put>
CUresult set(lane& own, CUgraphExec exec, CUgraphNode node, Put&& put) {
  if (!node_ok(node)) return CUDA_ERROR_INVALID_VALUE;
  marshal::set_node_body body;
  body.exec = value_of(exec);
  body.handle = value_of(node);
  std::vector<std::uint64_t> made;
  CUresult code = put(body.node, made);
  marshal::instantiate_reply needs;
  if (code == CUDA_SUCCESS) {
    code = exec ? call<api::opcode::cuGraphExecNodeSetParams>(own, body, needs)
                : call<api::opcode::cuGraphNodeSetParams>(own, body);
  }
  if (code != CUDA_SUCCESS) return forget(own, made), code;
  return exec ? learn_needs(own, std::move(needs), exec) : code;
}

template <class Put>
CUresult set_in(lane& own, CUgraphExec exec, CUgraphNode node, Put&& put) {
  return find_object<exec_info>(own, exec) ? set(own, exec, node, put) : CUDA_ERROR_INVALID_VALUE;
}

/// `take` turns the node and the graph that it is in into the program's struct.
template <class Node, class Take>
CUresult get(lane& own, CUgraphNode node, const void* out, Take&& take) {
  if (!out || !node_ok(node)) return CUDA_ERROR_INVALID_VALUE;
  request r(typed<api::opcode::cuGraphKernelNodeGetParams_v2>, own,
            marshal::nodes_body{.subject = value_of(node), .capacity = Node::type});
  marshal::get_node_reply reply;
  if (const CUresult code = r.call(reply); code != CUDA_SUCCESS) return code;
  const auto* answer = std::get_if<Node>(&reply.node.node);
  return answer && take(*answer, reply.graph) ? CUDA_SUCCESS : r.malformed();
}

/// Books the address that the device chose for an allocation node, so that copies know it.
CUresult know_memory(lane& own, std::int32_t device, std::uint64_t address, std::uint64_t size) {
  memory_block block;
  block.base = address, block.size = size;
  block.context = own.context_handle();
  block.device = device;
  return own.state().memory.insert_graph_memory(block);
}

/// The node is a host function that stands for a copy of the program's own processor.
bool host_copy(lane& own, CUgraphNode node, CUDA_MEMCPY3D& out) {
  bool found = false;
  (void)get<marshal::host_node>(own, node, &out, [&](const marshal::host_node& answer, std::uint64_t) {
    if (const CUDA_MEMCPY3D* copy = host_copy_of(own, answer.function)) out = *copy, found = true;
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

CUresult learn_needs(const lane& own, marshal::instantiate_reply&& reply, CUgraphExec exec) {
  exec_info* info = find_object<exec_info>(own, exec);
  if (!info) return CUDA_ERROR_INVALID_VALUE;  // another thread has destroyed it
  const std::lock_guard lock(info->mutex);
  info->sources = std::move(reply.sources);
  info->targets = std::move(reply.targets);
  info->functions = reply.functions;
  return CUDA_SUCCESS;
}

namespace ends {

using ids = std::vector<std::uint64_t>;

#define OUTBOARD_PLACE CUgraphNode *out, CUgraph graph, const CUgraphNode *before, std::size_t count
/// An end that adds: `pointer` must not be null; the expression fills `to`.
#define OUTBOARD_ADD(pointer, expression)               \
  lane& own = this_lane();                              \
  if (!(pointer)) return CUDA_ERROR_INVALID_VALUE;      \
  return add(own, {out, graph, before, nullptr, count}, \
             [&]([[maybe_unused]] node_parameters& to, [[maybe_unused]] ids& made) { return expression; })
#define OUTBOARD_SET(pointer, exec, expression)                                                          \
  lane& own = this_lane();                                                                               \
  if (!(pointer)) return CUDA_ERROR_INVALID_VALUE;                                                       \
  return set_in(own, exec, node, [&]([[maybe_unused]] node_parameters& to, [[maybe_unused]] ids& made) { \
    return expression;                                                                                   \
  })
#define OUTBOARD_SET_NODE(pointer, expression)     \
  lane& own = this_lane();                         \
  if (!(pointer)) return CUDA_ERROR_INVALID_VALUE; \
  return set(own, nullptr, node,                   \
             [&]([[maybe_unused]] node_parameters& to, [[maybe_unused]] ids& made) { return expression; })
/// An end that asks: the expression takes the server's `answer` about a node in `graph`; false: it makes no
/// sense.
#define OUTBOARD_GET(kind, pointer, expression) \
  lane& own = this_lane();                      \
  return get<marshal::kind>(                    \
      own, node, pointer,                       \
      [&](const marshal::kind& answer, [[maybe_unused]] std::uint64_t graph) { return expression; })

// kernels
CUresult cuGraphAddKernelNode_v2(OUTBOARD_PLACE, const CUDA_KERNEL_NODE_PARAMS_v2* p) {
  OUTBOARD_ADD(p, put_kernel(own, *p, to));
}
CUresult cuGraphAddKernelNode(OUTBOARD_PLACE, const CUDA_KERNEL_NODE_PARAMS_v1* p) {
  OUTBOARD_ADD(p, put_kernel(own, widened(*p), to));
}
CUresult cuGraphKernelNodeSetParams_v2(CUgraphNode node, const CUDA_KERNEL_NODE_PARAMS_v2* p) {
  OUTBOARD_SET_NODE(p, put_kernel(own, *p, to));
}
CUresult cuGraphKernelNodeSetParams(CUgraphNode node, const CUDA_KERNEL_NODE_PARAMS_v1* p) {
  OUTBOARD_SET_NODE(p, put_kernel(own, widened(*p), to));
}
CUresult cuGraphExecKernelNodeSetParams_v2(CUgraphExec exec, CUgraphNode node,
                                           const CUDA_KERNEL_NODE_PARAMS_v2* p) {
  OUTBOARD_SET(p, exec, put_kernel(own, *p, to));
}
CUresult cuGraphExecKernelNodeSetParams(CUgraphExec exec, CUgraphNode node,
                                        const CUDA_KERNEL_NODE_PARAMS_v1* p) {
  OUTBOARD_SET(p, exec, put_kernel(own, widened(*p), to));
}
CUresult cuGraphKernelNodeGetParams_v2(CUgraphNode node, CUDA_KERNEL_NODE_PARAMS_v2* p) {
  OUTBOARD_GET(kernel_node, p, take_kernel(own, node, graph, answer, *p));
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
  OUTBOARD_ADD(p, put_copy(own, *p, context, to, made));
}
CUresult cuGraphMemcpyNodeSetParams(CUgraphNode node, const CUDA_MEMCPY3D* p) {
  OUTBOARD_SET_NODE(p, put_copy(own, *p, nullptr, to, made));
}
CUresult cuGraphExecMemcpyNodeSetParams(CUgraphExec exec, CUgraphNode node, const CUDA_MEMCPY3D* p,
                                        CUcontext context) {
  OUTBOARD_SET(p, exec, put_copy(own, *p, context, to, made));
}
CUresult cuGraphMemcpyNodeGetParams(CUgraphNode node, CUDA_MEMCPY3D* p) {
  lane& own = this_lane();
  const CUresult code = get<marshal::copy_node>(
      own, node, p,
      [&](const marshal::copy_node& answer, std::uint64_t) { return take_copy(own, answer, *p), true; });
  CUDA_MEMCPY3D on_host{};
  if (code != CUDA_ERROR_INVALID_VALUE || !p || !host_copy(own, node, on_host)) return code;
  return *p = on_host, CUDA_SUCCESS;
}

CUresult cuGraphAddMemsetNode(OUTBOARD_PLACE, const CUDA_MEMSET_NODE_PARAMS_v1* p, CUcontext context) {
  OUTBOARD_ADD(p, put_fill(own, widened(*p, context), to));
}
CUresult cuGraphMemsetNodeSetParams(CUgraphNode node, const CUDA_MEMSET_NODE_PARAMS_v1* p) {
  OUTBOARD_SET_NODE(p, put_fill(own, widened(*p, nullptr), to));
}
CUresult cuGraphExecMemsetNodeSetParams(CUgraphExec exec, CUgraphNode node,
                                        const CUDA_MEMSET_NODE_PARAMS_v1* p, CUcontext context) {
  OUTBOARD_SET(p, exec, put_fill(own, widened(*p, context), to));
}
CUresult cuGraphMemsetNodeGetParams(CUgraphNode node, CUDA_MEMSET_NODE_PARAMS_v1* p) {
  lane& own = this_lane();
  CUDA_MEMSET_NODE_PARAMS_v2 wide{};
  const CUresult code = get<marshal::memset_node>(
      own, node, p,
      [&](const marshal::memset_node& answer, std::uint64_t) { return take_fill(answer, wide), true; });
  if (code == CUDA_SUCCESS)
    *p = {wide.dst, wide.pitch, wide.value, wide.elementSize, wide.width, wide.height};
  return code;
}

// host functions, child graphs, nothing, events
CUresult cuGraphAddHostNode(OUTBOARD_PLACE, const CUDA_HOST_NODE_PARAMS_v1* p) {
  OUTBOARD_ADD(p, put_host(own, p->fn, p->userData, to, made));
}
CUresult cuGraphHostNodeSetParams(CUgraphNode node, const CUDA_HOST_NODE_PARAMS_v1* p) {
  OUTBOARD_SET_NODE(p, put_host(own, p->fn, p->userData, to, made));
}
CUresult cuGraphExecHostNodeSetParams(CUgraphExec exec, CUgraphNode node, const CUDA_HOST_NODE_PARAMS_v1* p) {
  OUTBOARD_SET(p, exec, put_host(own, p->fn, p->userData, to, made));
}
CUresult cuGraphHostNodeGetParams(CUgraphNode node, CUDA_HOST_NODE_PARAMS_v1* p) {
  lane& own = this_lane();
  bool is_function = false;
  const CUresult code =
      get<marshal::host_node>(own, node, p, [&](const marshal::host_node& answer, std::uint64_t) {
        is_function = take_host(own, answer, *p);
        return is_function || host_copy_of(own, answer.function);
      });
  return code == CUDA_SUCCESS && !is_function ? CUDA_ERROR_INVALID_VALUE : code;
}

CUresult cuGraphAddChildGraphNode(OUTBOARD_PLACE, CUgraph child) {
  OUTBOARD_ADD(true, put_child(own, child, to));
}
CUresult cuGraphExecChildGraphNodeSetParams(CUgraphExec exec, CUgraphNode node, CUgraph child) {
  OUTBOARD_SET(true, exec, put_child(own, child, to));
}
CUresult cuGraphChildGraphNodeGetGraph(CUgraphNode node, CUgraph* child) {
  OUTBOARD_GET(child_node, child, (*child = reinterpret_cast<CUgraph>(answer.graph), true));
}
CUresult cuGraphAddEmptyNode(OUTBOARD_PLACE) {
  OUTBOARD_ADD(true, (to.node = marshal::empty_node{}, CUDA_SUCCESS));
}

CUresult cuGraphAddEventRecordNode(OUTBOARD_PLACE, CUevent event) {
  OUTBOARD_ADD(true, put_record(own, event, to));
}
CUresult cuGraphEventRecordNodeSetEvent(CUgraphNode node, CUevent event) {
  OUTBOARD_SET_NODE(true, put_record(own, event, to));
}
CUresult cuGraphExecEventRecordNodeSetEvent(CUgraphExec exec, CUgraphNode node, CUevent event) {
  OUTBOARD_SET(true, exec, put_record(own, event, to));
}
CUresult cuGraphEventRecordNodeGetEvent(CUgraphNode node, CUevent* event) {
  OUTBOARD_GET(record_node, event, (*event = reinterpret_cast<CUevent>(answer.event), true));
}
CUresult cuGraphAddEventWaitNode(OUTBOARD_PLACE, CUevent event) {
  OUTBOARD_ADD(true, put_wait(own, event, to));
}
CUresult cuGraphEventWaitNodeSetEvent(CUgraphNode node, CUevent event) {
  OUTBOARD_SET_NODE(true, put_wait(own, event, to));
}
CUresult cuGraphExecEventWaitNodeSetEvent(CUgraphExec exec, CUgraphNode node, CUevent event) {
  OUTBOARD_SET(true, exec, put_wait(own, event, to));
}
CUresult cuGraphEventWaitNodeGetEvent(CUgraphNode node, CUevent* event) {
  OUTBOARD_GET(wait_node, event, (*event = reinterpret_cast<CUevent>(answer.event), true));
}

// memory
CUresult cuGraphAddBatchMemOpNode(OUTBOARD_PLACE, const CUDA_BATCH_MEM_OP_NODE_PARAMS_v1* p) {
  OUTBOARD_ADD(p, put_operations(own, p->ctx, p->paramArray, p->count, p->flags, to));
}
CUresult cuGraphBatchMemOpNodeSetParams(CUgraphNode node, const CUDA_BATCH_MEM_OP_NODE_PARAMS_v1* p) {
  OUTBOARD_SET_NODE(p, put_operations(own, p->ctx, p->paramArray, p->count, p->flags, to));
}
CUresult cuGraphExecBatchMemOpNodeSetParams(CUgraphExec exec, CUgraphNode node,
                                            const CUDA_BATCH_MEM_OP_NODE_PARAMS_v1* p) {
  OUTBOARD_SET(p, exec, put_operations(own, p->ctx, p->paramArray, p->count, p->flags, to));
}
CUresult cuGraphBatchMemOpNodeGetParams(CUgraphNode node, CUDA_BATCH_MEM_OP_NODE_PARAMS_v1* p) {
  OUTBOARD_GET(operations_node, p, take_operations(node, graph, answer, *p));
}

CUresult cuGraphAddMemAllocNode(OUTBOARD_PLACE, CUDA_MEM_ALLOC_NODE_PARAMS_v1* p) {
  lane& own = this_lane();
  if (!p) return CUDA_ERROR_INVALID_VALUE;
  CUDA_MEM_ALLOC_NODE_PARAMS_v2 wide{};
  static_assert(sizeof wide == sizeof *p);
  std::memcpy(&wide, p, sizeof wide);
  added more;
  const CUresult code = add(
      own, {out, graph, before, nullptr, count},
      [&](node_parameters& to, ids&) { return put_allocation(own, wide, to); }, &more);
  if (code != CUDA_SUCCESS) return code;
  p->dptr = more.address;
  return know_memory(own, wide.poolProps.location.id, more.address, p->bytesize);
}
CUresult cuGraphMemAllocNodeGetParams(CUgraphNode node, CUDA_MEM_ALLOC_NODE_PARAMS_v1* p) {
  OUTBOARD_GET(
      alloc_node, p,
      (take_allocation(node, graph, answer, *reinterpret_cast<CUDA_MEM_ALLOC_NODE_PARAMS_v2*>(p)), true));
}
CUresult cuGraphAddMemFreeNode(OUTBOARD_PLACE, CUdeviceptr address) {
  OUTBOARD_ADD(address, (to.node = marshal::free_node{.address = address}, CUDA_SUCCESS));
}
CUresult cuGraphMemFreeNodeGetParams(CUgraphNode node, CUdeviceptr* address) {
  OUTBOARD_GET(free_node, address, (*address = answer.address, true));
}

// any kind
CUresult cuGraphAddNode_v2(CUgraphNode* out, CUgraph graph, const CUgraphNode* before,
                           const CUgraphEdgeData* edges, std::size_t count, CUgraphNodeParams* p) {
  lane& own = this_lane();
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
  return p->type == CU_GRAPH_NODE_TYPE_CONDITIONAL ? keep_bodies(own, *out, more.graphs, *p) : code;
}
CUresult cuGraphAddNode(OUTBOARD_PLACE, CUgraphNodeParams* p) {
  return ends::cuGraphAddNode_v2(out, graph, before, nullptr, count, p);
}
CUresult cuGraphNodeSetParams(CUgraphNode node, CUgraphNodeParams* p) {
  lane& own = this_lane();
  if (!p) return CUDA_ERROR_INVALID_VALUE;
  const CUresult code =
      set(own, nullptr, node, [&](node_parameters& to, ids& made) { return put_any(own, *p, to, made); });
  CUgraphNodeType type{};
  // The driver does not look at parameters for another type of node.
  const bool other = code == CUDA_ERROR_INVALID_HANDLE &&
                     ends::cuGraphNodeGetType(node, &type) == CUDA_SUCCESS && type != p->type;
  return other ? CUDA_ERROR_INVALID_VALUE : code;
}
CUresult cuGraphExecNodeSetParams(CUgraphExec exec, CUgraphNode node, CUgraphNodeParams* p) {
  OUTBOARD_SET(p, exec, put_any(own, *p, to, made));
}

}  // namespace ends
}  // namespace outboard::frontend::cuda
