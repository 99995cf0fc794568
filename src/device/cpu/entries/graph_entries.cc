// Entries of the chapter graph about structure: graphs, their nodes and edges.
#include <cstdio>
#include <map>
#include <string>

#include <cstring>

#include "device/cpu/graph/graph_handles.hh"

namespace outboard::device::cpu {
namespace {

CUresult create(CUgraph* out, unsigned flags) {
  if (out == nullptr || flags != 0) return CUDA_ERROR_INVALID_VALUE;
  return with_graphs(
      [&] { return *out = reinterpret_cast<CUgraph>(make_graph(false)->handle), CUDA_SUCCESS; });
}

CUresult destroy(CUgraph handle) {
  return with_graphs([&]() -> CUresult {
    const graph_ptr graph = find_graph(handle);
    if (graph == nullptr || graph->owned) return CUDA_ERROR_INVALID_VALUE;
    for (const capture_ptr& c : here().captures) {
      if (c->graph == graph) return CUDA_ERROR_ILLEGAL_STATE;
    }
    here().graphs.remove(number(handle));
    return CUDA_SUCCESS;
  });
}

/// Nodes that give or take memory stay where they are.
bool is_memory(const graph_node& node) {
  return std::holds_alternative<allocation_work>(node.work) ||
         std::holds_alternative<release_work>(node.work);
}

CUresult clone(CUgraph* out, CUgraph original) {
  if (out == nullptr) return CUDA_ERROR_INVALID_VALUE;
  return with_graphs([&]() -> CUresult {
    const graph_ptr graph = find_graph(original);
    if (graph == nullptr) return CUDA_ERROR_INVALID_VALUE;
    if (has_memory(*graph)) return CUDA_ERROR_NOT_SUPPORTED;
    return *out = reinterpret_cast<CUgraph>(clone_graph(*graph, false)->handle), CUDA_SUCCESS;
  });
}

CUresult find_in_clone(CUgraphNode* out, CUgraphNode original, CUgraph cloned) {
  if (out == nullptr) return CUDA_ERROR_INVALID_VALUE;
  return with_graphs([&]() -> CUresult {
    const graph_ptr graph = find_graph(cloned);
    if (graph == nullptr) return CUDA_ERROR_INVALID_VALUE;
    const auto found = graph->clones.find(number(original));
    if (found == graph->clones.end() || here().graph_nodes.find(found->second) == nullptr) {
      return CUDA_ERROR_INVALID_VALUE;
    }
    return *out = reinterpret_cast<CUgraphNode>(found->second), CUDA_SUCCESS;
  });
}

CUresult get_type(CUgraphNode handle, CUgraphNodeType* out) {
  if (out == nullptr) return CUDA_ERROR_INVALID_VALUE;
  return with_graphs([&]() -> CUresult {
    const auto node = find_node(handle);
    if (node == nullptr) return CUDA_ERROR_INVALID_VALUE;
    return *out = node->type, CUDA_SUCCESS;
  });
}

/// The common shape of enumerations: how many there are, or as many as there is room for and null beyond.
CUresult give(const std::vector<const graph_node*>& found, CUgraphNode* out, std::size_t* count) {
  if (count == nullptr) return CUDA_ERROR_INVALID_VALUE;
  if (out == nullptr) return *count = found.size(), CUDA_SUCCESS;
  for (std::size_t i = 0; i < *count; ++i) out[i] = i < found.size() ? handle_of(*found[i]) : nullptr;
  *count = std::min(*count, found.size());
  return CUDA_SUCCESS;
}

CUresult get_nodes(CUgraph handle, CUgraphNode* out, std::size_t* count) {
  return with_graphs([&]() -> CUresult {
    const graph_ptr graph = find_graph(handle);
    if (graph == nullptr) return CUDA_ERROR_INVALID_VALUE;
    std::vector<const graph_node*> found;
    for (const auto& node : graph->nodes) found.push_back(node.get());
    return give(found, out, count);
  });
}

CUresult get_roots(CUgraph handle, CUgraphNode* out, std::size_t* count) {
  return with_graphs([&]() -> CUresult {
    const graph_ptr graph = find_graph(handle);
    if (graph == nullptr) return CUDA_ERROR_INVALID_VALUE;
    std::vector<const graph_node*> found;
    for (const auto& node : graph->nodes) {
      if (node->before.empty()) found.push_back(node.get());
    }
    return give(found, out, count);
  });
}

void plain(CUgraphEdgeData* data, std::size_t count) {
  for (std::size_t i = 0; data != nullptr && i < count; ++i) data[i] = {};
}

CUresult edges_v2(CUgraph handle, CUgraphNode* from, CUgraphNode* to, CUgraphEdgeData* data,
                  std::size_t* count) {
  return with_graphs([&]() -> CUresult {
    const graph_ptr graph = find_graph(handle);
    if (graph == nullptr || count == nullptr || (from == nullptr) != (to == nullptr))
      return CUDA_ERROR_INVALID_VALUE;
    std::vector<const graph_node*> sources, targets;
    for (const auto& node : graph->nodes) {
      for (const graph_node* next : node->after) sources.push_back(node.get()), targets.push_back(next);
    }
    std::size_t room = *count;
    if (const CUresult r = give(sources, from, count); r != CUDA_SUCCESS || from == nullptr) return r;
    if (const CUresult r = give(targets, to, &room); r != CUDA_SUCCESS) return r;
    return plain(data, *count), CUDA_SUCCESS;
  });
}
CUresult edges(CUgraph handle, CUgraphNode* from, CUgraphNode* to, std::size_t* count) {
  return edges_v2(handle, from, to, nullptr, count);
}

template <std::vector<graph_node*> graph_node::*Side>
CUresult neighbours_v2(CUgraphNode handle, CUgraphNode* out, CUgraphEdgeData* data, std::size_t* count) {
  return with_graphs([&]() -> CUresult {
    const auto node = find_node(handle);
    if (node == nullptr) return CUDA_ERROR_INVALID_VALUE;
    const auto& side = (*node).*Side;
    const CUresult r = give({side.begin(), side.end()}, out, count);
    if (r == CUDA_SUCCESS && out != nullptr) plain(data, *count);
    return r;
  });
}
template <std::vector<graph_node*> graph_node::*Side>
CUresult neighbours(CUgraphNode handle, CUgraphNode* out, std::size_t* count) {
  return neighbours_v2<Side>(handle, out, nullptr, count);
}

template <bool Add>
CUresult change_edges_v2(CUgraph handle, const CUgraphNode* from, const CUgraphNode* to,
                         const CUgraphEdgeData* data, std::size_t count) {
  return with_graphs([&]() -> CUresult {
    const graph_ptr graph = find_graph(handle);
    if (graph == nullptr || (count > 0 && (from == nullptr || to == nullptr)))
      return CUDA_ERROR_INVALID_VALUE;
    if (!plain_edges(data, count)) return CUDA_ERROR_NOT_SUPPORTED;
    std::vector<std::pair<graph_node*, graph_node*>> pairs;
    for (std::size_t i = 0; i < count; ++i) {
      const auto source = find_node(from[i]), target = find_node(to[i]);
      if (source == nullptr || target == nullptr || source == target) return CUDA_ERROR_INVALID_VALUE;
      if (source->graph != graph.get() || target->graph != graph.get()) return CUDA_ERROR_INVALID_VALUE;
      const bool there = std::ranges::find(target->before, source.get()) != target->before.end();
      if (there == Add) return CUDA_ERROR_INVALID_VALUE;
      pairs.emplace_back(source.get(), target.get());
    }
    for (const auto& [source, target] : pairs)
      Add ? add_edge(*source, *target) : remove_edge(*source, *target);
    return CUDA_SUCCESS;
  });
}
template <bool Add>
CUresult change_edges(CUgraph handle, const CUgraphNode* from, const CUgraphNode* to, std::size_t count) {
  return change_edges_v2<Add>(handle, from, to, nullptr, count);
}

const char* name_of(CUgraphNodeType type) {
  switch (type) {
    case CU_GRAPH_NODE_TYPE_KERNEL:
      return "KERNEL";
    case CU_GRAPH_NODE_TYPE_MEMCPY:
      return "MEMCPY";
    case CU_GRAPH_NODE_TYPE_MEMSET:
      return "MEMSET";
    case CU_GRAPH_NODE_TYPE_HOST:
      return "HOST";
    case CU_GRAPH_NODE_TYPE_GRAPH:
      return "CHILD GRAPH";
    case CU_GRAPH_NODE_TYPE_EMPTY:
      return "EMPTY";
    case CU_GRAPH_NODE_TYPE_WAIT_EVENT:
      return "EVENT WAIT";
    case CU_GRAPH_NODE_TYPE_EVENT_RECORD:
      return "EVENT RECORD";
    case CU_GRAPH_NODE_TYPE_MEM_ALLOC:
      return "MEM ALLOC";
    case CU_GRAPH_NODE_TYPE_MEM_FREE:
      return "MEM FREE";
    default:
      return "BATCH MEM OP";
  }
}

void print_graph(std::FILE* to, const graph_object& graph, const std::string& prefix) {
  std::map<const graph_node*, std::size_t> numbers;
  for (const auto& node : graph.nodes) {
    const std::size_t number = numbers[node.get()] = numbers.size();
    const auto* kernel = std::get_if<kernel_work>(&node->work);
    std::fprintf(to, "\"%s%zu\" [shape=box label=\"%zu\\n%s%s%s\"]\n", prefix.c_str(), number, number,
                 name_of(node->type), kernel != nullptr ? "\\n" : "",
                 kernel != nullptr ? kernel->what.info->name.c_str() : "");
    if (const auto* child = std::get_if<child_work>(&node->work)) {
      std::fprintf(to, "subgraph \"cluster_%s%zu\" {\n", prefix.c_str(), number);
      print_graph(to, *child->graph, prefix + std::to_string(number) + "_");
      std::fprintf(to, "}\n");
    }
  }
  for (const auto& node : graph.nodes) {
    for (const graph_node* next : node->after) {
      std::fprintf(to, "\"%s%zu\" -> \"%s%zu\"\n", prefix.c_str(), numbers[node.get()], prefix.c_str(),
                   numbers[next]);
    }
  }
}

CUresult print(CUgraph handle, const char* path, unsigned) {
  if (path == nullptr) return CUDA_ERROR_INVALID_VALUE;
  return with_graphs([&]() -> CUresult {
    const graph_ptr graph = find_graph(handle);
    if (graph == nullptr) return CUDA_ERROR_INVALID_VALUE;
    std::FILE* to = std::fopen(path, "we");
    if (to == nullptr) return CUDA_ERROR_OPERATING_SYSTEM;
    std::fprintf(to, "digraph dot {\n");
    print_graph(to, *graph, "graph_");
    std::fprintf(to, "}\n");
    return std::fclose(to) == 0 ? CUDA_SUCCESS : CUDA_ERROR_OPERATING_SYSTEM;
  });
}

CUresult destroy_node(CUgraphNode handle) {
  return with_graphs([&]() -> CUresult {
    const auto node = find_node(handle);
    if (node == nullptr) return CUDA_ERROR_INVALID_VALUE;
    for (const capture_ptr& c : here().captures) {
      if (c->graph.get() == node->graph) return CUDA_ERROR_ILLEGAL_STATE;
    }
    if (is_memory(*node)) return CUDA_ERROR_NOT_SUPPORTED;
    return remove_node(*node), CUDA_SUCCESS;
  });
}

// --- memory of graphs
// ----------------------------------------------------------------------------------------------------

/// Memory goes with its graph: nothing is kept for the next one.
CUresult trim_memory(CUdevice device) {
  return after_init([&] { return device == 0 ? CUDA_SUCCESS : CUDA_ERROR_INVALID_DEVICE; });
}

CUresult get_memory_attribute(CUdevice device, CUgraphMem_attribute which, void* out) {
  return after_init([&]() -> CUresult {
    if (device != 0) return CUDA_ERROR_INVALID_DEVICE;
    if (out == nullptr) return CUDA_ERROR_INVALID_VALUE;
    const graph_memory_account& memory = here().graph_account;
    cuuint64_t value = 0;
    switch (which) {
      case CU_GRAPH_MEM_ATTR_USED_MEM_CURRENT:
      case CU_GRAPH_MEM_ATTR_RESERVED_MEM_CURRENT:
        value = memory.used.load();
        break;
      case CU_GRAPH_MEM_ATTR_USED_MEM_HIGH:
      case CU_GRAPH_MEM_ATTR_RESERVED_MEM_HIGH:
        value = memory.high.load();
        break;
      default:
        return CUDA_ERROR_INVALID_VALUE;
    }
    return std::memcpy(out, &value, sizeof value), CUDA_SUCCESS;
  });
}

/// High marks can be reset to what is used now, by 0 alone.
CUresult set_memory_attribute(CUdevice device, CUgraphMem_attribute which, void* in) {
  return after_init([&]() -> CUresult {
    if (device != 0) return CUDA_ERROR_INVALID_DEVICE;
    cuuint64_t value = 1;
    if (in != nullptr) std::memcpy(&value, in, sizeof value);
    const bool mark =
        which == CU_GRAPH_MEM_ATTR_USED_MEM_HIGH || which == CU_GRAPH_MEM_ATTR_RESERVED_MEM_HIGH;
    if (!mark || value != 0) return CUDA_ERROR_INVALID_VALUE;
    here().graph_account.high.store(here().graph_account.used.load());
    return CUDA_SUCCESS;
  });
}

}  // namespace

void fill_graph_entries(api::driver_table& t) {
  t.cuDeviceGraphMemTrim = trim_memory;
  t.cuDeviceGetGraphMemAttribute = get_memory_attribute;
  t.cuDeviceSetGraphMemAttribute = set_memory_attribute;
  t.cuGraphCreate = create;
  t.cuGraphDestroy = destroy;
  t.cuGraphClone = clone;
  t.cuGraphNodeFindInClone = find_in_clone;
  t.cuGraphNodeGetType = get_type;
  t.cuGraphGetNodes = get_nodes;
  t.cuGraphGetRootNodes = get_roots;
  t.cuGraphGetEdges = edges;
  t.cuGraphGetEdges_v2 = edges_v2;
  t.cuGraphNodeGetDependencies = neighbours<&graph_node::before>;
  t.cuGraphNodeGetDependencies_v2 = neighbours_v2<&graph_node::before>;
  t.cuGraphNodeGetDependentNodes = neighbours<&graph_node::after>;
  t.cuGraphNodeGetDependentNodes_v2 = neighbours_v2<&graph_node::after>;
  t.cuGraphAddDependencies = change_edges<true>;
  t.cuGraphAddDependencies_v2 = change_edges_v2<true>;
  t.cuGraphRemoveDependencies = change_edges<false>;
  t.cuGraphRemoveDependencies_v2 = change_edges_v2<false>;
  t.cuGraphDestroyNode = destroy_node;
  t.cuGraphDebugDotPrint = print;
}

}  // namespace outboard::device::cpu
