// Chapter graph, structure: graphs, and the enumeration of their nodes and edges.
#include <bit>

#include "frontend/cuda/chapters/capture.hh"
#include "frontend/cuda/ends.hh"
#include "frontend/cuda/graph_nodes.hh"

namespace outboard::frontend::cuda {
namespace {

std::uint64_t bits(const CUgraphEdgeData& edge) {
  static_assert(sizeof edge == sizeof(std::uint64_t));
  return std::bit_cast<std::uint64_t>(edge);
}

/// Requests that list nodes.
using listing = like<api::opcode::cuGraphGetNodes>;

struct enumeration {
  listing what;
  std::uint64_t subject = 0;
  CUgraphNode *nodes = nullptr, *others = nullptr;
  CUgraphEdgeData* edges = nullptr;
  std::size_t* count = nullptr;
};

/// How many there are; or, with room for them, as many as fit and null beyond, as the driver does.
CUresult enumerate(lane& own, const enumeration& e) {
  if (!e.count) return CUDA_ERROR_INVALID_VALUE;
  request r(e.what, own, marshal::nodes_body{.subject = e.subject, .capacity = e.nodes ? *e.count : 0});
  marshal::nodes_reply reply;
  if (const CUresult code = r.call(reply); code != CUDA_SUCCESS) return code;
  const std::size_t n = reply.nodes.size();
  if (e.nodes && n > *e.count) return r.malformed();
  if (!e.nodes) return *e.count = static_cast<std::size_t>(reply.count), CUDA_SUCCESS;
  if (e.others && reply.others.size() != n) return r.malformed();
  for (std::size_t i = 0; i < *e.count; ++i) {
    e.nodes[i] = i < n ? reinterpret_cast<CUgraphNode>(reply.nodes[i]) : nullptr;
    if (e.others) e.others[i] = i < n ? reinterpret_cast<CUgraphNode>(reply.others[i]) : nullptr;
    if (e.edges && i < n)
      e.edges[i] = std::bit_cast<CUgraphEdgeData>(i < reply.edges.size() ? reply.edges[i] : 0ull);
  }
  *e.count = n;
  return CUDA_SUCCESS;
}

CUresult of_graph(lane& own, listing what, CUgraph graph, CUgraphNode* nodes, std::size_t* count) {
  if (!graph_ok(own, graph)) return CUDA_ERROR_INVALID_VALUE;
  return enumerate(own, {what, value_of(graph), nodes, nullptr, nullptr, count});
}

CUresult of_node(lane& own, listing what, CUgraphNode node, CUgraphNode* nodes, CUgraphEdgeData* edges,
                 std::size_t* count) {
  if (!node_ok(node)) return CUDA_ERROR_INVALID_VALUE;
  return enumerate(own, {what, value_of(node), nodes, nullptr, edges, count});
}

CUresult all_edges(lane& own, CUgraph graph, CUgraphNode* from, CUgraphNode* to, CUgraphEdgeData* edges,
                   std::size_t* count) {
  if (!graph_ok(own, graph) || !from != !to) return CUDA_ERROR_INVALID_VALUE;
  return enumerate(own, {typed<api::opcode::cuGraphGetEdges_v2>, value_of(graph), from, to, edges, count});
}

CUresult change_edges(lane& own, like<api::opcode::cuGraphAddDependencies_v2> what, CUgraph graph,
                      const CUgraphNode* from, const CUgraphNode* to, const CUgraphEdgeData* edges,
                      std::size_t count) {
  if (!graph_ok(own, graph) || (count && (!from || !to)) || count > marshal::max_graph_edges)
    return CUDA_ERROR_INVALID_VALUE;
  marshal::edges_body body;
  body.graph = value_of(graph);
  for (std::size_t i = 0; i < count; ++i) {
    if (!node_ok(from[i]) || !node_ok(to[i])) return CUDA_ERROR_INVALID_VALUE;
    body.from.push_back(value_of(from[i]));
    body.to.push_back(value_of(to[i]));
    if (edges) body.edges.push_back(bits(edges[i]));
  }
  return call(what, own, body);
}

}  // namespace

namespace ends {

CUresult cuGraphCreate(CUgraph* out, unsigned flags) {
  lane& own = this_lane();
  if (!out || flags) return CUDA_ERROR_INVALID_VALUE;
  handle_table& table = own.state().handles[api::handle_kind::graph];
  const std::uint64_t made = table.reserve(std::make_unique<object>());
  if (!made) return CUDA_ERROR_OUT_OF_MEMORY;
  if (const CUresult code = post<api::opcode::cuGraphCreate>(own, marshal::handle_body{.handle = made});
      code != CUDA_SUCCESS)
    return table.release(made), code;
  return *out = reinterpret_cast<CUgraph>(made), CUDA_SUCCESS;
}

CUresult cuGraphClone(CUgraph* out, CUgraph original) {
  lane& own = this_lane();
  if (!out || !graph_ok(own, original)) return CUDA_ERROR_INVALID_VALUE;
  handle_table& table = own.state().handles[api::handle_kind::graph];
  const std::uint64_t made = table.reserve(std::make_unique<object>());
  if (!made) return CUDA_ERROR_OUT_OF_MEMORY;
  if (const CUresult code = call<api::opcode::cuGraphClone>(
          own, marshal::instantiate_body{.graph = value_of(original), .exec = made});
      code != CUDA_SUCCESS)
    return table.release(made), code;
  return *out = reinterpret_cast<CUgraph>(made), CUDA_SUCCESS;
}

CUresult cuGraphDestroy(CUgraph graph) {
  lane& own = this_lane();
  if (!find_object<object>(own, graph)) return CUDA_ERROR_INVALID_VALUE;
  request r(typed<api::opcode::cuGraphDestroy>, own, marshal::handle_body{.handle = value_of(graph)});
  const CUresult code = any_capture_open() ? r.call() : r.post();
  if (code != CUDA_SUCCESS) return code;
  forget_given(value_of(graph), 0);
  own.state().handles[api::handle_kind::graph].release(value_of(graph));
  return code;
}

CUresult cuGraphDestroyNode(CUgraphNode node) {
  lane& own = this_lane();
  if (!node_ok(node)) return CUDA_ERROR_INVALID_VALUE;
  const CUresult code =
      call<api::opcode::cuGraphDestroyNode>(own, marshal::handle_body{.handle = value_of(node)});
  if (code == CUDA_SUCCESS) forget_given(0, value_of(node));
  return code;
}

CUresult cuGraphGetNodes(CUgraph graph, CUgraphNode* nodes, std::size_t* count) {
  lane& own = this_lane();
  return of_graph(own, typed<api::opcode::cuGraphGetNodes>, graph, nodes, count);
}
CUresult cuGraphGetRootNodes(CUgraph graph, CUgraphNode* nodes, std::size_t* count) {
  lane& own = this_lane();
  return of_graph(own, typed<api::opcode::cuGraphGetRootNodes>, graph, nodes, count);
}

CUresult cuGraphGetEdges(CUgraph graph, CUgraphNode* from, CUgraphNode* to, std::size_t* count) {
  lane& own = this_lane();
  return all_edges(own, graph, from, to, nullptr, count);
}
CUresult cuGraphGetEdges_v2(CUgraph graph, CUgraphNode* from, CUgraphNode* to, CUgraphEdgeData* edges,
                            std::size_t* count) {
  lane& own = this_lane();
  return all_edges(own, graph, from, to, edges, count);
}

CUresult cuGraphNodeGetDependencies(CUgraphNode node, CUgraphNode* nodes, std::size_t* count) {
  lane& own = this_lane();
  return of_node(own, typed<api::opcode::cuGraphNodeGetDependencies_v2>, node, nodes, nullptr, count);
}
CUresult cuGraphNodeGetDependencies_v2(CUgraphNode node, CUgraphNode* nodes, CUgraphEdgeData* edges,
                                       std::size_t* count) {
  lane& own = this_lane();
  return of_node(own, typed<api::opcode::cuGraphNodeGetDependencies_v2>, node, nodes, edges, count);
}
CUresult cuGraphNodeGetDependentNodes(CUgraphNode node, CUgraphNode* nodes, std::size_t* count) {
  lane& own = this_lane();
  return of_node(own, typed<api::opcode::cuGraphNodeGetDependentNodes_v2>, node, nodes, nullptr, count);
}
CUresult cuGraphNodeGetDependentNodes_v2(CUgraphNode node, CUgraphNode* nodes, CUgraphEdgeData* edges,
                                         std::size_t* count) {
  lane& own = this_lane();
  return of_node(own, typed<api::opcode::cuGraphNodeGetDependentNodes_v2>, node, nodes, edges, count);
}

CUresult cuGraphAddDependencies(CUgraph graph, const CUgraphNode* from, const CUgraphNode* to,
                                std::size_t count) {
  lane& own = this_lane();
  return change_edges(own, typed<api::opcode::cuGraphAddDependencies_v2>, graph, from, to, nullptr, count);
}
CUresult cuGraphAddDependencies_v2(CUgraph graph, const CUgraphNode* from, const CUgraphNode* to,
                                   const CUgraphEdgeData* edges, std::size_t count) {
  lane& own = this_lane();
  return change_edges(own, typed<api::opcode::cuGraphAddDependencies_v2>, graph, from, to, edges, count);
}
CUresult cuGraphRemoveDependencies(CUgraph graph, const CUgraphNode* from, const CUgraphNode* to,
                                   std::size_t count) {
  lane& own = this_lane();
  return change_edges(own, typed<api::opcode::cuGraphRemoveDependencies_v2>, graph, from, to, nullptr, count);
}
CUresult cuGraphRemoveDependencies_v2(CUgraph graph, const CUgraphNode* from, const CUgraphNode* to,
                                      const CUgraphEdgeData* edges, std::size_t count) {
  lane& own = this_lane();
  return change_edges(own, typed<api::opcode::cuGraphRemoveDependencies_v2>, graph, from, to, edges, count);
}

CUresult cuGraphNodeGetType(CUgraphNode node, CUgraphNodeType* type) {
  lane& own = this_lane();
  if (!type || !node_ok(node)) return CUDA_ERROR_INVALID_VALUE;
  marshal::number_reply number;
  const CUresult code =
      call<api::opcode::cuGraphNodeGetType>(own, marshal::handle_body{.handle = value_of(node)}, number);
  if (code != CUDA_SUCCESS) return code;
  *type = static_cast<CUgraphNodeType>(number.value);
  if (*type == CU_GRAPH_NODE_TYPE_HOST && is_host_copy(own, node)) *type = CU_GRAPH_NODE_TYPE_MEMCPY;
  return code;
}

CUresult cuGraphNodeFindInClone(CUgraphNode* out, CUgraphNode original, CUgraph clone) {
  lane& own = this_lane();
  if (!out || !node_ok(original) || !graph_ok(own, clone)) return CUDA_ERROR_INVALID_VALUE;
  marshal::number_reply number;
  const CUresult code = call<api::opcode::cuGraphNodeFindInClone>(
      own, marshal::nodes_body{.subject = value_of(original), .capacity = value_of(clone)}, number);
  if (code == CUDA_SUCCESS) *out = reinterpret_cast<CUgraphNode>(number.value);
  return code;
}

}  // namespace ends
}  // namespace outboard::frontend::cuda
