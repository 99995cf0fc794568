// From the handles that a program gives to graphs, nodes and executable graphs, under the graphs' lock.
// Internal to the entries of the graph chapters.
#pragma once

#include <algorithm>

#include "device/cpu/graph/capture.hh"
#include "device/cpu/graph/graph.hh"
#include "device/cpu/machine.hh"

namespace outboard::device::cpu {

template <class H>
std::uint64_t number(H handle) {
  return reinterpret_cast<std::uint64_t>(handle);
}

inline graph_ptr find_graph(CUgraph handle) { return here().graphs.find(number(handle)); }
inline std::shared_ptr<graph_node> find_node(CUgraphNode handle) {
  return here().graph_nodes.find(number(handle));
}
inline std::shared_ptr<graph_exec> find_exec(CUgraphExec handle) {
  return here().graph_execs.find(number(handle));
}
inline CUgraphNode handle_of(const graph_node& node) { return reinterpret_cast<CUgraphNode>(node.handle); }

/// Runs an entry's body with the graphs locked; needs no context.
template <class Body>
CUresult with_graphs(Body&& body) noexcept {
  return after_init([&]() -> CUresult {
    const std::lock_guard lock(here().graphs_mutex);
    return body();
  });
}

/// Nodes of one graph. Errors: 1 a dead one, or one of another graph.
inline CUresult find_nodes(const graph_object& graph, const CUgraphNode* handles, std::size_t count,
                           std::vector<graph_node*>& out) {
  if (count > 0 && handles == nullptr) return CUDA_ERROR_INVALID_VALUE;
  for (std::size_t i = 0; i < count; ++i) {
    const auto node = find_node(handles[i]);
    if (node == nullptr || node->graph != &graph) return CUDA_ERROR_INVALID_VALUE;
    if (std::ranges::find(out, node.get()) != out.end()) return CUDA_ERROR_INVALID_VALUE;
    out.push_back(node.get());
  }
  return CUDA_SUCCESS;
}

/// This device has no edges but full ones.
inline bool plain_edges(const CUgraphEdgeData* data, std::size_t count) {
  for (std::size_t i = 0; data != nullptr && i < count; ++i) {
    const CUgraphEdgeData& e = data[i];
    if (e.from_port != 0 || e.to_port != 0 || e.type != 0) return false;
  }
  return true;
}

}  // namespace outboard::device::cpu
