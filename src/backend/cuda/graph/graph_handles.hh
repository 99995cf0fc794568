// Graphs, nodes and executable graphs behind the client's ids, for the handlers of the graph chapter. With
// the turn.
#pragma once

#include <algorithm>
#include <bit>

#include "backend/cuda/driver_call.hh"
#include "backend/cuda/graph/graph_copies.hh"
#include "backend/cuda/session.hh"
#include "marshal/cuda/graph_bodies.hh"

namespace outboard::backend {

/// Of a graph, a node, an executable graph: a dead one is an invalid value to the driver.
template <class H>
CUresult find(call& c, std::uint64_t id, H& out) {
  const CUresult code = c.objects().resolve(id, out);
  return code == CUDA_ERROR_INVALID_HANDLE ? CUDA_ERROR_INVALID_VALUE : code;
}

inline CUresult find_all(call& c, const std::vector<std::uint64_t>& ids, std::vector<CUgraphNode>& out) {
  for (const std::uint64_t id : ids) {
    CUgraphNode node = nullptr;
    if (const CUresult code = find(c, id, node); code != CUDA_SUCCESS) return code;
    out.push_back(node);
  }
  return CUDA_SUCCESS;
}

inline std::uint64_t name_node(call& c, CUgraphNode node, void* graph) {
  return node ? c.objects().name_of(api::handle_kind::graph_node, node, graph) : 0;
}
inline std::uint64_t name_graph(call& c, CUgraph graph, void* parent) {
  return graph ? c.objects().name_of(api::handle_kind::graph, graph, parent) : 0;
}

inline std::vector<CUgraphEdgeData> edge_data(const std::vector<std::uint64_t>& edges) {
  std::vector<CUgraphEdgeData> data;
  for (const std::uint64_t e : edges) data.push_back(std::bit_cast<CUgraphEdgeData>(e));
  return data;
}

/// The graph that work in this stream goes into, or null. host_functions.cc
CUresult graph_under_capture(call& c, CUstream stream, bool per_thread, CUgraph& graph);

/// What the launches of an executable graph need; null: no such one.
inline exec_needs* needs_of(call& c, std::uint64_t exec) {
  server_object* found = c.objects().find(api::handle_kind::graph_exec, exec);
  return found ? static_cast<exec_needs*>(found->extra.get()) : nullptr;
}

/// What the client learns of it.
inline marshal::instantiate_reply needs_reply(const exec_needs& needs) {
  marshal::instantiate_reply reply;
  for (const boxed_bytes& b : needs.sources) reply.sources.push_back(b.id);
  for (const boxed_bytes& b : needs.targets) reply.targets.push_back(b.id);
  for (const boxed_bytes& b : needs.silent)
    if (std::ranges::find(reply.targets, b.id) == reply.targets.end()) reply.targets.push_back(b.id);
  reply.functions = needs.functions;
  return reply;
}

/// Is the graph that it was made from there, and what it was then? The driver tells nothing of an executable
/// graph itself. graph_nodes.cc
bool can_be_learned(call& c, const exec_needs& needs);
/// No launch of it is under way. graph_execs.cc
bool last_is_over(const api::driver_table& d, const exec_needs& needs);
/// What only launches use that are over.
void drop_old(call& c, exec_changes& changed);

/// The parameters of a copy node, and the blocks that stand for host boxes of the client; those are the
/// caller's, whatever the result. graph_nodes.cc
CUresult native_copy(call& c, const marshal::node_parameters& from, CUDA_MEMCPY3D& out, copy_blocks& blocks);
/// False: its numbers are not those of a copy.
bool is_copy(const marshal::node_parameters& from);

/// What the node is, as the client would describe it. graph_queries.cc
CUresult describe_node(call& c, CUgraphNode node, CUgraph graph, marshal::node_parameters& out);

/// Requests that make the session's graphs again, as they are. False: something in them cannot be told.
/// graph_records.cc
[[nodiscard]] bool graph_records(call& c, std::vector<marshal::record_body>& all);

/// The node's graph has changed: what was instantiated of it before is not what it is now.
inline void note_change_of_node(call& c, std::uint64_t node, std::uint64_t ticket) {
  if (void* graph = c.objects().parent_of(node)) c.objects().note_change(graph, ticket);
}

/// A host function of the client for a graph; the graph keeps it.
void keep_with_graph(call& c, CUgraph graph, host_calls::function* function);

}  // namespace outboard::backend
