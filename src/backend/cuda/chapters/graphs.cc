// Handlers of the chapter graph about structure.
#include <algorithm>
#include <bit>

#include "backend/cuda/ends.hh"
#include "backend/cuda/graph/graph_handles.hh"

namespace outboard::backend {
namespace {

/// A graph of a million nodes is real; a reply must stay below a frame.
constexpr std::uint64_t most_nodes = 1 << 19;

struct listing {
  std::vector<CUgraphNode> nodes, others;
  std::vector<CUgraphEdgeData> edges;
  std::size_t count = 0;
};

/// `ask` is an enumeration of the driver with the room that the listing has; asked twice.
template <class Ask>
CUresult enumerate(std::uint64_t capacity, listing& found, Ask&& ask) {
  if (const CUresult code = ask(nullptr, nullptr, nullptr, &found.count); code != CUDA_SUCCESS) return code;
  const std::size_t all = found.count;
  std::size_t n = std::min({capacity, std::uint64_t{all}, most_nodes});
  if (n == 0) return CUDA_SUCCESS;
  found.nodes.resize(n), found.others.resize(n), found.edges.resize(n);
  const CUresult code = ask(found.nodes.data(), found.others.data(), found.edges.data(), &n);
  found.nodes.resize(std::min(n, found.nodes.size()));
  return code;
}

outcome answer(call& c, CUresult code, const listing& found, void* graph, bool pairs) {
  if (code != CUDA_SUCCESS) return outcome::answer(code);
  marshal::nodes_reply reply;
  reply.count = found.count;
  for (std::size_t i = 0; i < found.nodes.size(); ++i) {
    reply.nodes.push_back(name_node(c, found.nodes[i], graph));
    if (pairs) reply.others.push_back(name_node(c, found.others[i], graph));
    reply.edges.push_back(std::bit_cast<std::uint64_t>(found.edges[i]));
  }
  marshal::put_body(c.reply, reply);
  return outcome::answer(code);
}

template <class Entry>
outcome nodes_of_graph(call& c, const marshal::nodes_body& body, Entry entry) {
  CUgraph graph = nullptr;
  listing found;
  CUresult code = find(c, body.subject, graph);
  if (code == CUDA_SUCCESS) {
    code = enumerate(body.capacity, found,
                     [&](CUgraphNode* nodes, CUgraphNode*, CUgraphEdgeData*, std::size_t* n) {
                       return call_driver(entry, graph, nodes, n);
                     });
  }
  return answer(c, code, found, graph, false);
}

template <class New, class Old>
outcome neighbours(call& c, const marshal::nodes_body& body, New with_edges, Old plain) {
  CUgraphNode node = nullptr;
  listing found;
  CUresult code = find(c, body.subject, node);
  if (code == CUDA_SUCCESS) {
    code = enumerate(
        body.capacity, found, [&](CUgraphNode* nodes, CUgraphNode*, CUgraphEdgeData* edges, std::size_t* n) {
          return with_edges ? with_edges(node, nodes, edges, n) : call_driver(plain, node, nodes, n);
        });
  }
  return answer(c, code, found, c.objects().parent_of(body.subject), false);
}

template <class New, class Old>
outcome change_edges(call& c, const marshal::edges_body& body, New with_edges, Old plain) {
  if (body.from.size() != body.to.size() || (!body.edges.empty() && body.edges.size() != body.from.size()))
    return outcome::malformed();
  CUgraph graph = nullptr;
  std::vector<CUgraphNode> from, to;
  CUresult code = find(c, body.graph, graph);
  if (code == CUDA_SUCCESS) code = find_all(c, body.from, from);
  if (code == CUDA_SUCCESS) code = find_all(c, body.to, to);
  if (code != CUDA_SUCCESS) return outcome::answer(code);
  c.objects().note_change(graph, c.header.ticket);
  const auto edges = edge_data(body.edges);
  if (with_edges) {
    return outcome::answer(
        with_edges(graph, from.data(), to.data(), edges.empty() ? nullptr : edges.data(), from.size()));
  }
  if (!edges.empty()) return outcome::answer(CUDA_ERROR_NOT_SUPPORTED);
  return outcome::answer(call_driver(plain, graph, from.data(), to.data(), from.size()));
}

}  // namespace

namespace ends {

outcome cuGraphCreate(call& c, const marshal::handle_body& body) {
  CUgraph graph = nullptr;
  const CUresult code = call_driver(c.driver().cuGraphCreate, &graph, 0);
  const bool kept = code == CUDA_SUCCESS ? c.objects().create(body.handle, graph, c.as_record())
                                         : c.objects().fail(body.handle, code);
  return kept ? outcome::answer(code) : outcome::malformed();
}

outcome cuGraphClone(call& c, const marshal::instantiate_body& body) {
  CUgraph original = nullptr, clone = nullptr;
  CUresult code = find(c, body.graph, original);
  if (code == CUDA_SUCCESS) code = call_driver(c.driver().cuGraphClone, &clone, original);
  if (code != CUDA_SUCCESS) return outcome::answer(code);
  return c.objects().create(body.exec, clone, c.as_record()) ? outcome::answer(code) : outcome::malformed();
}

outcome cuGraphDestroy(call& c, const marshal::handle_body& body) {
  CUgraph graph = nullptr;
  CUresult code = find(c, body.handle, graph);
  if (code == CUDA_SUCCESS) code = call_driver(c.driver().cuGraphDestroy, graph);
  if (code == CUDA_SUCCESS) c.objects().erase(body.handle);
  return outcome::answer(code);
}

outcome cuGraphDestroyNode(call& c, const marshal::handle_body& body) {
  CUgraphNode node = nullptr;
  CUgraph child = nullptr;
  CUgraphNodeType type = CU_GRAPH_NODE_TYPE_EMPTY;
  CUresult code = find(c, body.handle, node);
  if (code == CUDA_SUCCESS) code = call_driver(c.driver().cuGraphNodeGetType, node, &type);
  if (code == CUDA_SUCCESS && type == CU_GRAPH_NODE_TYPE_GRAPH)
    call_driver(c.driver().cuGraphChildGraphNodeGetGraph, node, &child);
  if (code == CUDA_SUCCESS) code = call_driver(c.driver().cuGraphDestroyNode, node);
  if (code != CUDA_SUCCESS) return outcome::answer(code);
  if (child) c.objects().erase(name_graph(c, child, nullptr));
  note_change_of_node(c, body.handle, c.header.ticket);
  c.objects().erase(body.handle);
  return outcome::answer(code);
}

outcome cuGraphGetNodes(call& c, const marshal::nodes_body& body) {
  return nodes_of_graph(c, body, c.driver().cuGraphGetNodes);
}
outcome cuGraphGetRootNodes(call& c, const marshal::nodes_body& body) {
  return nodes_of_graph(c, body, c.driver().cuGraphGetRootNodes);
}

outcome cuGraphGetEdges_v2(call& c, const marshal::nodes_body& body) {
  CUgraph graph = nullptr;
  listing found;
  const api::driver_table& d = c.driver();
  CUresult code = find(c, body.subject, graph);
  if (code == CUDA_SUCCESS) {
    code = enumerate(body.capacity, found,
                     [&](CUgraphNode* from, CUgraphNode* to, CUgraphEdgeData* edges, std::size_t* n) {
                       return d.cuGraphGetEdges_v2 ? d.cuGraphGetEdges_v2(graph, from, to, edges, n)
                                                   : call_driver(d.cuGraphGetEdges, graph, from, to, n);
                     });
  }
  return answer(c, code, found, graph, true);
}

outcome cuGraphNodeGetDependencies_v2(call& c, const marshal::nodes_body& body) {
  return neighbours(c, body, c.driver().cuGraphNodeGetDependencies_v2, c.driver().cuGraphNodeGetDependencies);
}
outcome cuGraphNodeGetDependentNodes_v2(call& c, const marshal::nodes_body& body) {
  return neighbours(c, body, c.driver().cuGraphNodeGetDependentNodes_v2,
                    c.driver().cuGraphNodeGetDependentNodes);
}
outcome cuGraphAddDependencies_v2(call& c, const marshal::edges_body& body) {
  return change_edges(c, body, c.driver().cuGraphAddDependencies_v2, c.driver().cuGraphAddDependencies);
}
outcome cuGraphRemoveDependencies_v2(call& c, const marshal::edges_body& body) {
  return change_edges(c, body, c.driver().cuGraphRemoveDependencies_v2, c.driver().cuGraphRemoveDependencies);
}

outcome cuGraphNodeGetType(call& c, const marshal::handle_body& body) {
  CUgraphNode node = nullptr;
  CUgraphNodeType type = CU_GRAPH_NODE_TYPE_EMPTY;
  CUresult code = find(c, body.handle, node);
  if (code == CUDA_SUCCESS) code = call_driver(c.driver().cuGraphNodeGetType, node, &type);
  marshal::put_body(c.reply, marshal::number_reply{static_cast<std::int64_t>(type)});
  return outcome::answer(code);
}

outcome cuGraphNodeFindInClone(call& c, const marshal::nodes_body& body) {
  CUgraphNode original = nullptr, found = nullptr;
  CUgraph clone = nullptr;
  CUresult code = find(c, body.subject, original);
  if (code == CUDA_SUCCESS) code = find(c, body.capacity, clone);
  if (code == CUDA_SUCCESS) code = call_driver(c.driver().cuGraphNodeFindInClone, &found, original, clone);
  if (code == CUDA_SUCCESS) {
    marshal::put_body(c.reply, marshal::number_reply{static_cast<std::int64_t>(name_node(c, found, clone))});
  }
  return outcome::answer(code);
}

}  // namespace ends
}  // namespace outboard::backend
