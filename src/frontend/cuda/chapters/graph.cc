// Chapter graph, structure: graphs, and the enumeration of their nodes and edges.
#include <bit>

#include "frontend/cuda/chapters/capture.hh"
#include "frontend/cuda/ends.hh"
#include "frontend/cuda/gate.hh"
#include "frontend/cuda/graph_nodes.hh"

namespace outboard::frontend::cuda {
namespace {

std::uint64_t bits(const CUgraphEdgeData& edge) {
  static_assert(sizeof edge == sizeof(std::uint64_t));
  return std::bit_cast<std::uint64_t>(edge);
}

using lists = opcode_for<marshal::nodes_body, marshal::nodes_reply>;

struct enumeration {
  lists code;
  std::uint64_t subject = 0;
  CUgraphNode *nodes = nullptr, *others = nullptr;
  CUgraphEdgeData* edges = nullptr;
  std::size_t* count = nullptr;
};

/// How many there are; or, with room for them, as many as fit and null beyond, as the driver does.
CUresult enumerate(lane& own, const enumeration& e) {
  if (!e.count) return CUDA_ERROR_INVALID_VALUE;
  typed_request r(e.code, own, marshal::nodes_body{e.subject, e.nodes ? *e.count : 0});
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

CUresult of_graph(lane& own, lists code, CUgraph graph, CUgraphNode* nodes, std::size_t* count) {
  if (!graph_ok(graph)) return CUDA_ERROR_INVALID_VALUE;
  return enumerate(own, {code, value_of(graph), nodes, nullptr, nullptr, count});
}

CUresult of_node(lane& own, lists code, CUgraphNode node, CUgraphNode* nodes, CUgraphEdgeData* edges,
                 std::size_t* count) {
  if (!node_ok(node)) return CUDA_ERROR_INVALID_VALUE;
  return enumerate(own, {code, value_of(node), nodes, nullptr, edges, count});
}

CUresult all_edges(lane& own, CUgraph graph, CUgraphNode* from, CUgraphNode* to, CUgraphEdgeData* edges,
                   std::size_t* count) {
  if (!graph_ok(graph) || !from != !to) return CUDA_ERROR_INVALID_VALUE;
  return enumerate(own, {api::opcode::cuGraphGetEdges_v2, value_of(graph), from, to, edges, count});
}

CUresult change_edges(lane& own, opcode_for<marshal::edges_body> code, CUgraph graph, const CUgraphNode* from,
                      const CUgraphNode* to, const CUgraphEdgeData* edges, std::size_t count) {
  if (!graph_ok(graph) || (count && (!from || !to)) || count > marshal::max_graph_edges)
    return CUDA_ERROR_INVALID_VALUE;
  marshal::edges_body body;
  body.graph = value_of(graph);
  for (std::size_t i = 0; i < count; ++i) {
    if (!node_ok(from[i]) || !node_ok(to[i])) return CUDA_ERROR_INVALID_VALUE;
    body.from.push_back(value_of(from[i]));
    body.to.push_back(value_of(to[i]));
    if (edges) body.edges.push_back(bits(edges[i]));
  }
  typed_request r(code, own, body);
  return r.call();
}

}  // namespace

namespace ends {

#define OUTBOARD_GATE(symbol) \
  lane& own = this_lane();    \
  if (const CUresult refused = gate<api::opcode::symbol>(own); refused != CUDA_SUCCESS) return refused

CUresult cuGraphCreate(CUgraph* out, unsigned flags) {
  OUTBOARD_GATE(cuGraphCreate);
  if (!out || flags) return CUDA_ERROR_INVALID_VALUE;
  handle_table& table = process::instance().objects().handles(api::handle_kind::graph);
  const std::uint64_t made = table.reserve(std::make_unique<object>());
  if (!made) return CUDA_ERROR_OUT_OF_MEMORY;
  request_of<api::opcode::cuGraphCreate> r(own, marshal::handle_body{made});
  if (const CUresult code = r.post(); code != CUDA_SUCCESS) return table.release(made), code;
  return *out = reinterpret_cast<CUgraph>(made), CUDA_SUCCESS;
}

CUresult cuGraphClone(CUgraph* out, CUgraph original) {
  OUTBOARD_GATE(cuGraphClone);
  if (!out || !graph_ok(original)) return CUDA_ERROR_INVALID_VALUE;
  handle_table& table = process::instance().objects().handles(api::handle_kind::graph);
  const std::uint64_t made = table.reserve(std::make_unique<object>());
  if (!made) return CUDA_ERROR_OUT_OF_MEMORY;
  request_of<api::opcode::cuGraphClone> r(own,
                                          marshal::instantiate_body{value_of(original), made, 0, 0, false});
  if (const CUresult code = r.call(); code != CUDA_SUCCESS) return table.release(made), code;
  return *out = reinterpret_cast<CUgraph>(made), CUDA_SUCCESS;
}

CUresult cuGraphDestroy(CUgraph graph) {
  OUTBOARD_GATE(cuGraphDestroy);
  if (!find_object<object>(graph)) return CUDA_ERROR_INVALID_VALUE;
  request_of<api::opcode::cuGraphDestroy> r(own, marshal::handle_body{value_of(graph)});
  const CUresult code = any_capture_open() ? r.call() : r.post();
  if (code != CUDA_SUCCESS) return code;
  forget_told(value_of(graph), 0);
  process::instance().objects().handles(api::handle_kind::graph).release(value_of(graph));
  return code;
}

CUresult cuGraphDestroyNode(CUgraphNode node) {
  OUTBOARD_GATE(cuGraphDestroyNode);
  if (!node_ok(node)) return CUDA_ERROR_INVALID_VALUE;
  request_of<api::opcode::cuGraphDestroyNode> r(own, marshal::handle_body{value_of(node)});
  const CUresult code = r.call();
  if (code == CUDA_SUCCESS) forget_told(0, value_of(node));
  return code;
}

CUresult cuGraphGetNodes(CUgraph graph, CUgraphNode* nodes, std::size_t* count) {
  OUTBOARD_GATE(cuGraphGetNodes);
  return of_graph(own, api::opcode::cuGraphGetNodes, graph, nodes, count);
}
CUresult cuGraphGetRootNodes(CUgraph graph, CUgraphNode* nodes, std::size_t* count) {
  OUTBOARD_GATE(cuGraphGetRootNodes);
  return of_graph(own, api::opcode::cuGraphGetRootNodes, graph, nodes, count);
}

CUresult cuGraphGetEdges(CUgraph graph, CUgraphNode* from, CUgraphNode* to, std::size_t* count) {
  OUTBOARD_GATE(cuGraphGetEdges);
  return all_edges(own, graph, from, to, nullptr, count);
}
CUresult cuGraphGetEdges_v2(CUgraph graph, CUgraphNode* from, CUgraphNode* to, CUgraphEdgeData* edges,
                            std::size_t* count) {
  OUTBOARD_GATE(cuGraphGetEdges_v2);
  return all_edges(own, graph, from, to, edges, count);
}

CUresult cuGraphNodeGetDependencies(CUgraphNode node, CUgraphNode* nodes, std::size_t* count) {
  OUTBOARD_GATE(cuGraphNodeGetDependencies);
  return of_node(own, api::opcode::cuGraphNodeGetDependencies_v2, node, nodes, nullptr, count);
}
CUresult cuGraphNodeGetDependencies_v2(CUgraphNode node, CUgraphNode* nodes, CUgraphEdgeData* edges,
                                       std::size_t* count) {
  OUTBOARD_GATE(cuGraphNodeGetDependencies_v2);
  return of_node(own, api::opcode::cuGraphNodeGetDependencies_v2, node, nodes, edges, count);
}
CUresult cuGraphNodeGetDependentNodes(CUgraphNode node, CUgraphNode* nodes, std::size_t* count) {
  OUTBOARD_GATE(cuGraphNodeGetDependentNodes);
  return of_node(own, api::opcode::cuGraphNodeGetDependentNodes_v2, node, nodes, nullptr, count);
}
CUresult cuGraphNodeGetDependentNodes_v2(CUgraphNode node, CUgraphNode* nodes, CUgraphEdgeData* edges,
                                         std::size_t* count) {
  OUTBOARD_GATE(cuGraphNodeGetDependentNodes_v2);
  return of_node(own, api::opcode::cuGraphNodeGetDependentNodes_v2, node, nodes, edges, count);
}

CUresult cuGraphAddDependencies(CUgraph graph, const CUgraphNode* from, const CUgraphNode* to,
                                std::size_t count) {
  OUTBOARD_GATE(cuGraphAddDependencies);
  return change_edges(own, api::opcode::cuGraphAddDependencies_v2, graph, from, to, nullptr, count);
}
CUresult cuGraphAddDependencies_v2(CUgraph graph, const CUgraphNode* from, const CUgraphNode* to,
                                   const CUgraphEdgeData* edges, std::size_t count) {
  OUTBOARD_GATE(cuGraphAddDependencies_v2);
  return change_edges(own, api::opcode::cuGraphAddDependencies_v2, graph, from, to, edges, count);
}
CUresult cuGraphRemoveDependencies(CUgraph graph, const CUgraphNode* from, const CUgraphNode* to,
                                   std::size_t count) {
  OUTBOARD_GATE(cuGraphRemoveDependencies);
  return change_edges(own, api::opcode::cuGraphRemoveDependencies_v2, graph, from, to, nullptr, count);
}
CUresult cuGraphRemoveDependencies_v2(CUgraph graph, const CUgraphNode* from, const CUgraphNode* to,
                                      const CUgraphEdgeData* edges, std::size_t count) {
  OUTBOARD_GATE(cuGraphRemoveDependencies_v2);
  return change_edges(own, api::opcode::cuGraphRemoveDependencies_v2, graph, from, to, edges, count);
}

CUresult cuGraphNodeGetType(CUgraphNode node, CUgraphNodeType* type) {
  OUTBOARD_GATE(cuGraphNodeGetType);
  if (!type || !node_ok(node)) return CUDA_ERROR_INVALID_VALUE;
  request_of<api::opcode::cuGraphNodeGetType> r(own, marshal::handle_body{value_of(node)});
  marshal::number_reply reply;
  const CUresult code = r.call(reply);
  if (code != CUDA_SUCCESS) return code;
  *type = static_cast<CUgraphNodeType>(reply.value);
  if (*type == CU_GRAPH_NODE_TYPE_HOST && is_host_copy(own, node)) *type = CU_GRAPH_NODE_TYPE_MEMCPY;
  return code;
}

CUresult cuGraphNodeFindInClone(CUgraphNode* out, CUgraphNode original, CUgraph clone) {
  OUTBOARD_GATE(cuGraphNodeFindInClone);
  if (!out || !node_ok(original) || !graph_ok(clone)) return CUDA_ERROR_INVALID_VALUE;
  request_of<api::opcode::cuGraphNodeFindInClone> r(own,
                                                    marshal::nodes_body{value_of(original), value_of(clone)});
  marshal::number_reply reply;
  const CUresult code = r.call(reply);
  if (code == CUDA_SUCCESS) *out = reinterpret_cast<CUgraphNode>(reply.value);
  return code;
}

}  // namespace ends
}  // namespace outboard::frontend::cuda
