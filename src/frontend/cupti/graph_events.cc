#include "frontend/cupti/graph_events.hh"

#include <algorithm>
#include <map>
#include <string_view>
#include <utility>

#include "api/cuda/functions.hh"
#include "frontend/cuda/chapters/capture.hh"
#include "frontend/cuda/ends.hh"

namespace outboard::frontend::cupti {
namespace {

std::uint64_t argument(const tool_call& call, std::size_t which) {
  return static_cast<const std::uint64_t*>(call.parameters)[which];
}
template <class T>
T argument_as(const tool_call& call, std::size_t which) {
  return reinterpret_cast<T>(argument(call, which));
}

CUgraphNodeType type_of(CUgraphNode node) {
  CUgraphNodeType type = CU_GRAPH_NODE_TYPE_EMPTY;
  (void)cuda::ends::cuGraphNodeGetType(node, &type);
  return type;
}

std::vector<CUgraphNode> nodes_of(CUgraph graph) {
  std::size_t count = 0;
  if (cuda::ends::cuGraphGetNodes(graph, nullptr, &count) != CUDA_SUCCESS) return {};
  std::vector<CUgraphNode> nodes(count);
  if (cuda::ends::cuGraphGetNodes(graph, nodes.data(), &count) != CUDA_SUCCESS) return {};
  nodes.resize(std::min(count, nodes.size()));
  return nodes;
}

/// In one question, unless there are many.
std::vector<CUgraphNode> nodes_before(CUgraphNode node) {
  std::vector<CUgraphNode> nodes(8);
  std::size_t count = nodes.size();
  const auto ask = [&] {
    std::vector<CUgraphEdgeData> edges(nodes.size());
    return cuda::ends::cuGraphNodeGetDependencies_v2(node, nodes.data(), edges.data(), &count);
  };
  if (ask() != CUDA_SUCCESS) return {};
  // The driver fills what there is room for, and says how much it has filled.
  if (count >= nodes.size()) {
    if (cuda::ends::cuGraphNodeGetDependencies_v2(node, nullptr, nullptr, &count) != CUDA_SUCCESS) return {};
    nodes.resize(count);
    if (ask() != CUDA_SUCCESS) return {};
  }
  nodes.resize(std::min(count, nodes.size()));
  return nodes;
}

/// The nodes that an executable graph makes nodes of: those of child graphs, too.
void add_all_nodes(CUgraph graph, std::vector<std::pair<CUgraphNode, CUgraphNodeType>>& all) {
  for (const CUgraphNode node : nodes_of(graph)) {
    all.emplace_back(node, type_of(node));
    CUgraph child = nullptr;
    if (all.back().second == CU_GRAPH_NODE_TYPE_GRAPH &&
        cuda::ends::cuGraphChildGraphNodeGetGraph(node, &child) == CUDA_SUCCESS)
      add_all_nodes(child, all);
  }
}

/// Of the graph that this thread is about to make executable: asked before, because then the worker's records
/// of them can be told apart.
thread_local std::vector<std::pair<CUgraphNode, CUgraphNodeType>> instantiated;

struct capture {
  CUgraph graph = nullptr;  ///< null: the stream is in none
  std::vector<CUgraphNode> last;
};

/// What the stream of this call is captured into.
capture capture_of(const tool_call& call) {
  const auto stream = static_cast<CUstream>(const_cast<void*>(call.stream));
  CUstreamCaptureStatus status = CU_STREAM_CAPTURE_STATUS_NONE;
  capture now;
  const CUgraphNode* last = nullptr;
  std::size_t count = 0;
  const auto ask = api::per_thread(call.name) ? cuda::ends::cuStreamGetCaptureInfo_v2_ptsz
                                              : cuda::ends::cuStreamGetCaptureInfo_v2;
  if (ask(stream, &status, nullptr, &now.graph, &last, &count) != CUDA_SUCCESS ||
      status != CU_STREAM_CAPTURE_STATUS_ACTIVE)
    return {};
  now.last.assign(last, last + count);
  return now;
}

/// Of a node that a call adds or has added.
CUgraphNodeType added_type(const tool_call& call, const function_traits& f) {
  if (f.node_type != 0) return static_cast<CUgraphNodeType>(f.node_type - 1);
  const auto* const parameters = argument_as<const CUgraphNodeParams*>(call, 4u + f.edges);
  return parameters ? parameters->type : CU_GRAPH_NODE_TYPE_EMPTY;
}

/// The graph of the capture that this thread is about to end.
thread_local CUgraph captured = nullptr;

}  // namespace

void graph_events::tell(const lane& own, std::uint32_t event, const CUpti_GraphData& about) const {
  callbacks_.tell_resource(event, reinterpret_cast<CUcontext>(own.context_handle()), about);
}

void graph_events::entered(const lane& own, const tool_call& call, const function_traits& f) {
  CUpti_GraphData about{};
  switch (f.graph) {
    case graph_change::adds_node:
      about.graph = argument_as<CUgraph>(call, 1);
      about.nodeType = added_type(call, f);
      return tell(own, CUPTI_CBID_RESOURCE_GRAPHNODE_CREATE_STARTING, about);
    case graph_change::destroys:
      return tell_end(own, argument_as<CUgraph>(call, 0));
    case graph_change::destroys_node:
      return tell_end_of_node(own, argument_as<CUgraphNode>(call, 0));
    case graph_change::unlinks:
      return tell_links(own, call, f, CUPTI_CBID_RESOURCE_GRAPHNODE_DEPENDENCY_DESTROY_STARTING);
    case graph_change::instantiates:
      about.graph = argument_as<CUgraph>(call, 1);
      instantiated.clear();
      if (callbacks_.wants_resource(CUPTI_CBID_RESOURCE_GRAPHNODE_CLONED))
        add_all_nodes(about.graph, instantiated);
      return tell(own, CUPTI_CBID_RESOURCE_GRAPHEXEC_CREATE_STARTING, about);
    case graph_change::ends_capture:
      captured = capture_of(call).graph;
      return;
    case graph_change::destroys_exec:
      about.graphExec = argument_as<CUgraphExec>(call, 0);
      return tell(own, CUPTI_CBID_RESOURCE_GRAPHEXEC_DESTROY_STARTING, about);
    default:
      return;
  }
}

void graph_events::left(const lane& own, const tool_call& call, const function_traits& f) {
  if (f.graph == graph_change::none || *static_cast<const CUresult*>(call.result) != CUDA_SUCCESS) return;
  CUpti_GraphData about{};
  switch (f.graph) {
    case graph_change::creates:
      about.graph = *argument_as<CUgraph*>(call, 0);
      return tell(own, CUPTI_CBID_RESOURCE_GRAPH_CREATED, about);
    case graph_change::clones:
      return tell_clones(own, call);
    case graph_change::adds_node: {
      added_node added{
          argument_as<CUgraph>(call, 1), *argument_as<CUgraphNode*>(call, 0), added_type(call, f), {}};
      const auto* const before = argument_as<const CUgraphNode*>(call, 2);
      if (before) added.before.assign(before, before + argument(call, 3u + f.edges));
      return tell_node(own, added);
    }
    case graph_change::links:
      return tell_links(own, call, f, CUPTI_CBID_RESOURCE_GRAPHNODE_DEPENDENCY_CREATED);
    case graph_change::instantiates:
      return tell_instantiated(own, call);
    case graph_change::captures:
    case graph_change::captures_into:
      return begin_capture(own, call, f);
    case graph_change::ends_capture:
      return end_capture(argument_as<const CUgraph*>(call, 1));
    case graph_change::may_be_captured:
      return look_at_capture(own, call);
    default:
      return;
  }
}

/// A node is there, and is told of once.
void graph_events::tell_node(const lane& own, const added_node& added) {
  {
    const std::lock_guard lock(mutex_);
    if (!nodes_[added.graph].try_emplace(added.node, added.type).second) return;
  }
  CUpti_GraphData about{};
  about.graph = added.graph;
  about.node = added.node;
  about.nodeType = added.type;
  tell(own, CUPTI_CBID_RESOURCE_GRAPHNODE_CREATED, about);
  for (const CUgraphNode before : added.before) {
    about.dependency = before;
    tell(own, CUPTI_CBID_RESOURCE_GRAPHNODE_DEPENDENCY_CREATED, about);
  }
}

void graph_events::tell_links(const lane& own, const tool_call& call, const function_traits& f,
                              std::uint32_t event) const {
  const auto* const before = argument_as<const CUgraphNode*>(call, 1);
  const auto* const nodes = argument_as<const CUgraphNode*>(call, 2);
  if (!before || !nodes || !callbacks_.wants_resource(event)) return;
  CUpti_GraphData about{};
  about.graph = argument_as<CUgraph>(call, 0);
  for (std::size_t i = 0; i < argument(call, 3u + f.edges); ++i) {
    about.node = nodes[i];
    about.dependency = before[i];
    tell(own, event, about);
  }
}

void graph_events::tell_clones(const lane& own, const tool_call& call) {
  CUpti_GraphData about{};
  about.graph = *argument_as<CUgraph*>(call, 0);
  about.originalGraph = argument_as<CUgraph>(call, 1);
  tell(own, CUPTI_CBID_RESOURCE_GRAPH_CLONED, about);
  if (!callbacks_.wants_resource(CUPTI_CBID_RESOURCE_GRAPHNODE_CLONED)) return;
  for (const CUgraphNode node : nodes_of(about.originalGraph)) {
    about.originalNode = node;
    about.nodeType = type_of(node);
    if (cuda::ends::cuGraphNodeFindInClone(&about.node, node, about.graph) == CUDA_SUCCESS)
      tell(own, CUPTI_CBID_RESOURCE_GRAPHNODE_CLONED, about);
  }
}

void graph_events::tell_instantiated(const lane& own, const tool_call& call) {
  CUpti_GraphData about{};
  about.graphExec = *argument_as<CUgraphExec*>(call, 0);
  about.graph = argument_as<CUgraph>(call, 1);
  const std::uint32_t exec = numbers_.of_graph(about.graphExec);
  for (const auto& [node, type] : std::exchange(instantiated, {})) {
    CUpti_GraphData made{};
    made.originalGraph = about.graph;
    made.originalNode = node;
    made.node = numbers::as_node(numbers_.of_clone(exec, reinterpret_cast<std::uint64_t>(node)));
    made.nodeType = type;
    made.graphExec = about.graphExec;
    tell(own, CUPTI_CBID_RESOURCE_GRAPHNODE_CLONED, made);
  }
  tell(own, CUPTI_CBID_RESOURCE_GRAPHEXEC_CREATED, about);
}

/// Of a graph and of those of its nodes that were told of.
void graph_events::tell_end(const lane& own, CUgraph graph) {
  CUpti_GraphData about{};
  about.graph = graph;
  tell(own, CUPTI_CBID_RESOURCE_GRAPH_DESTROY_STARTING, about);
  std::map<CUgraphNode, CUgraphNodeType> nodes;
  {
    const std::lock_guard lock(mutex_);
    if (const auto known = nodes_.extract(graph)) nodes = std::move(known.mapped());
  }
  for (const auto& [node, type] : nodes) {
    about.node = node;
    about.nodeType = type;
    tell(own, CUPTI_CBID_RESOURCE_GRAPHNODE_DESTROY_STARTING, about);
  }
}

void graph_events::tell_end_of_node(const lane& own, CUgraphNode node) {
  CUpti_GraphData about{};
  about.node = node;
  about.nodeType = type_of(node);
  {
    const std::lock_guard lock(mutex_);
    for (auto& [graph, nodes] : nodes_) {
      if (nodes.erase(node) != 0) about.graph = graph;
    }
  }
  tell(own, CUPTI_CBID_RESOURCE_GRAPHNODE_DESTROY_STARTING, about);
}

void graph_events::begin_capture(const lane& own, const tool_call& call, const function_traits& f) {
  CUpti_GraphData about{};
  about.graph = capture_of(call).graph;
  if (!about.graph) return;
  if (f.graph == graph_change::captures) return tell(own, CUPTI_CBID_RESOURCE_GRAPH_CREATED, about);
  // What is in the program's graph already is not of this capture.
  const std::vector<CUgraphNode> there = nodes_of(about.graph);
  const std::lock_guard lock(mutex_);
  for (const CUgraphNode node : there) nodes_[about.graph].try_emplace(node, CU_GRAPH_NODE_TYPE_EMPTY);
}

/// The graph has the handle by which the program knows it.
void graph_events::end_capture(const CUgraph* graph) {
  const CUgraph before = std::exchange(captured, nullptr);
  if (!graph || !before || before == *graph) return;
  numbers_.rename_graph(before, *graph);
  const std::lock_guard lock(mutex_);
  if (auto known = nodes_.extract(before)) {
    known.key() = *graph;
    nodes_.insert(std::move(known));
  }
}

/// Those of them that nobody has been told of.
std::vector<CUgraphNode> graph_events::untold(CUgraph graph, std::span<const CUgraphNode> nodes) {
  std::vector<CUgraphNode> found;
  const std::lock_guard lock(mutex_);
  const auto known = nodes_.find(graph);
  for (const CUgraphNode node : nodes) {
    if (known == nodes_.end() || !known->second.contains(node)) found.push_back(node);
  }
  return found;
}

/// The nodes that this call has become: those behind which the capture stands now, and others before them
/// that nobody has been told of; the first ones first. What was told of is where the look ends.
void graph_events::look_at_capture(const lane& own, const tool_call& call) {
  if (!cuda::any_capture_open()) return;
  const capture now = capture_of(call);
  std::map<CUgraphNode, std::vector<CUgraphNode>> before;
  std::vector<CUgraphNode> open = untold(now.graph, now.last);
  while (!open.empty()) {
    const CUgraphNode node = open.back();
    const auto [at, is_new] = before.try_emplace(node);
    if (is_new) {
      at->second = nodes_before(node);
      for (const CUgraphNode earlier : untold(now.graph, at->second)) open.push_back(earlier);
      continue;
    }
    open.pop_back();
    tell_node(own, {now.graph, node, type_of(node), at->second});
  }
}

}  // namespace outboard::frontend::cupti
