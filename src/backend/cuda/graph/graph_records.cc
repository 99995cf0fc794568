// Graphs in a session's records: told as they are now, whatever calls or captures made them. What no request
// of the client's can say (child graphs, conditions, attributes of kernels) cannot be told, nor can an
// executable graph that is no longer what its graph is: then the session cannot be rebuilt.
#include "backend/cuda/graph/graph_handles.hh"
#include "base/log.hh"

namespace outboard::backend {
namespace {

template <class Body>
marshal::record_body as_record_body(const server_object& made, std::uint64_t ticket, std::uint64_t context,
                                    api::opcode code, const Body& body, std::uint64_t last = 0) {
  std::vector<std::byte> payload;
  wire::writer w(payload);
  marshal::put_body(w, body);
  if (last) w.put(last);
  const auto* first = reinterpret_cast<const std::uint8_t*>(payload.data());
  return {ticket ? ticket : made.records.front().ticket,
          context,
          static_cast<std::uint32_t>(code),
          {first, first + payload.size()},
          {}};
}

bool plain_kernel(call& c, CUgraphNode node) {
  for (const CUkernelNodeAttrID id :
       {CU_LAUNCH_ATTRIBUTE_COOPERATIVE, CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION}) {
    CUkernelNodeAttrValue value{};
    const CUresult code = call_driver(c.driver().cuGraphKernelNodeGetAttribute, node, id, &value);
    if (code == CUDA_SUCCESS && (value.cooperative || value.clusterDim.x > 1)) return false;
  }
  return true;
}

CUresult nodes_of(call& c, CUgraph graph, std::vector<CUgraphNode>& nodes) {
  std::size_t count = 0;
  CUresult code = call_driver(c.driver().cuGraphGetNodes, graph, nullptr, &count);
  nodes.resize(count);
  if (code == CUDA_SUCCESS && count)
    code = call_driver(c.driver().cuGraphGetNodes, graph, nodes.data(), &count);
  return code;
}

CUresult edges_of(call& c, CUgraph graph, marshal::edges_body& out) {
  const api::driver_table& d = c.driver();
  std::size_t count = 0;
  const bool with_data = d.cuGraphGetEdges_v2 != nullptr;
  CUresult code = with_data ? d.cuGraphGetEdges_v2(graph, nullptr, nullptr, nullptr, &count)
                            : call_driver(d.cuGraphGetEdges, graph, nullptr, nullptr, &count);
  if (code != CUDA_SUCCESS || count == 0) return code;
  std::vector<CUgraphNode> from(count), to(count);
  std::vector<CUgraphEdgeData> data(count);
  code = with_data ? d.cuGraphGetEdges_v2(graph, from.data(), to.data(), data.data(), &count)
                   : call_driver(d.cuGraphGetEdges, graph, from.data(), to.data(), &count);
  bool plain = true;
  for (std::size_t i = 0; i < count; ++i) {
    out.from.push_back(name_node(c, from[i], graph));
    out.to.push_back(name_node(c, to[i], graph));
    out.edges.push_back(std::bit_cast<std::uint64_t>(data[i]));
    plain = plain && out.edges.back() == 0;
  }
  if (plain) out.edges.clear();
  return code;
}

struct told_graph {
  std::uint64_t id = 0, ticket = 0;
  CUgraph native = nullptr;
};

bool tell(call& c, const told_graph& g, std::uint64_t context, std::vector<marshal::record_body>& all) {
  const server_object& made = *c.objects().at(g.id);
  all.push_back(as_record_body(made, 0, 0, api::opcode::cuGraphCreate, marshal::handle_body{g.id}));
  std::vector<CUgraphNode> nodes;
  if (nodes_of(c, g.native, nodes) != CUDA_SUCCESS) return false;
  for (CUgraphNode node : nodes) {
    marshal::add_node_body body;
    body.graph = g.id;
    if (describe_node(c, node, g.native, body.node) != CUDA_SUCCESS ||
        body.node.type == CU_GRAPH_NODE_TYPE_GRAPH ||
        (body.node.type == CU_GRAPH_NODE_TYPE_KERNEL && !plain_kernel(c, node))) {
      return false;
    }
    all.push_back(as_record_body(made, g.ticket, context, api::opcode::cuGraphAddNode_v2, body,
                                 name_node(c, node, g.native)));
  }
  marshal::edges_body edges;
  edges.graph = g.id;
  if (edges_of(c, g.native, edges) != CUDA_SUCCESS) return false;
  if (!edges.from.empty())
    all.push_back(as_record_body(made, g.ticket, context, api::opcode::cuGraphAddDependencies_v2, edges));
  return true;
}

/// Was it made of a graph that lives and has not changed since, and left as it was?
bool tellable(call& c, const server_object& exec, const std::map<std::uint64_t, told_graph>& graphs) {
  const record& made = exec.records.front();
  wire::reader from(made.payload);
  const auto body = marshal::take_body<marshal::instantiate_body>(from);
  const auto graph = graphs.find(body.graph);
  return from.ok() && graph != graphs.end() && graph->second.ticket < made.ticket &&
         c.objects().last_change(exec.native) == 0;
}

}  // namespace

bool graph_records(call& c, std::vector<marshal::record_body>& all) {
  object_tables& objects = c.objects();
  const auto contexts = objects.ids(api::handle_kind::context);
  const std::uint64_t context = contexts.empty() ? 0 : contexts.front();
  std::map<std::uint64_t, told_graph> graphs;
  for (const std::uint64_t id : objects.ids(api::handle_kind::graph)) {
    const server_object& graph = *objects.at(id);
    const std::uint64_t changed = objects.last_change(graph.native);
    const std::uint64_t ticket = std::max(changed, graph.records.front().ticket);
    graphs[id] = {id, ticket, static_cast<CUgraph>(graph.native)};
    if (changed != object_tables::untold && tell(c, graphs[id], context, all)) continue;
    log::warn("a graph of this session cannot be told: it has child graphs, conditions or attributes");
    return false;
  }
  for (const std::uint64_t id : objects.ids(api::handle_kind::graph_exec)) {
    if (tellable(c, *objects.at(id), graphs)) continue;
    log::warn("an executable graph of this session is not what its graph is now: it cannot be told");
    return false;
  }
  return true;
}

}  // namespace outboard::backend
