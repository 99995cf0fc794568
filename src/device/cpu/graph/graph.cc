#include "device/cpu/graph/graph.hh"

#include <algorithm>

#include "device/cpu/machine.hh"

namespace outboard::device::cpu {

user_object::~user_object() {
  here().user_objects.remove(handle);
  if (destroy != nullptr) destroy(data);
}

graph_object::~graph_object() {
  machine& m = here();
  for (const auto& node : nodes) m.graph_nodes.remove(node->handle);
  if (owned) m.graphs.remove(handle);
}

graph_ptr make_graph(bool owned) {
  auto made = std::make_shared<graph_object>();
  made->owned = owned;
  // An owned graph belongs to its node: the table must not keep it alive.
  made->handle = here().graphs.insert(owned ? graph_ptr(graph_ptr(), made.get()) : made);
  return made;
}

graph_node* add_node(graph_object& graph, CUgraphNodeType type, node_work work,
                     const std::vector<graph_node*>& before) {
  auto made = std::make_shared<graph_node>();
  made->type = type;
  made->graph = &graph;
  made->work = std::move(work);
  made->handle = here().graph_nodes.insert(made);
  graph.nodes.push_back(made);
  for (graph_node* other : before) add_edge(*other, *made);
  return made.get();
}

bool add_edge(graph_node& from, graph_node& to) {
  if (std::ranges::find(to.before, &from) != to.before.end()) return false;
  to.before.push_back(&from);
  from.after.push_back(&to);
  return true;
}

bool remove_edge(graph_node& from, graph_node& to) {
  return std::erase(to.before, &from) != 0 && std::erase(from.after, &to) != 0;
}

void remove_node(graph_node& node) {
  for (graph_node* other : node.before) std::erase(other->after, &node);
  for (graph_node* other : node.after) std::erase(other->before, &node);
  graph_object& graph = *node.graph;
  here().graph_nodes.remove(node.handle);
  std::erase_if(graph.nodes, [&](const auto& n) { return n.get() == &node; });
}

namespace {

/// Graphs inside a node are the node's own.
node_work clone_work(const node_work& work) {
  node_work copy = work;
  if (auto* child = std::get_if<child_work>(&copy)) child->graph = clone_graph(*child->graph, true);
  if (auto* conditional = std::get_if<conditional_work>(&copy)) {
    for (graph_ptr& body : conditional->bodies) body = clone_graph(*body, true);
  }
  return copy;
}

}  // namespace

graph_ptr clone_graph(const graph_object& original, bool owned) {
  graph_ptr copy = make_graph(owned);
  copy->objects = original.objects;
  std::map<const graph_node*, graph_node*> twins;
  for (const auto& node : original.nodes) {
    graph_node* twin = add_node(*copy, node->type, clone_work(node->work), {});
    twins[node.get()] = twin;
    copy->clones[node->handle] = twin->handle;
  }
  for (const auto& node : original.nodes) {
    for (const graph_node* other : node->before) add_edge(*twins.at(other), *twins.at(node.get()));
  }
  return copy;
}

bool has_memory(const graph_object& graph) {
  return std::ranges::any_of(graph.nodes, [](const auto& node) {
    return node->type == CU_GRAPH_NODE_TYPE_MEM_ALLOC || node->type == CU_GRAPH_NODE_TYPE_MEM_FREE;
  });
}

std::vector<graph_node*> ordered(const graph_object& graph) {
  std::map<const graph_node*, std::size_t> open;
  std::vector<graph_node*> order;
  order.reserve(graph.nodes.size());
  for (const auto& node : graph.nodes) {
    if (node->before.empty()) {
      order.push_back(node.get());
    } else {
      open[node.get()] = node->before.size();
    }
  }
  for (std::size_t i = 0; i < order.size(); ++i) {
    for (graph_node* next : order[i]->after) {
      if (--open[next] == 0) order.push_back(next);
    }
  }
  if (order.size() != graph.nodes.size()) order.clear();
  return order;
}

bool same_type(const graph_node& a, const graph_node& b) {
  return a.type == b.type && a.before.size() == b.before.size() && a.after.size() == b.after.size();
}

}  // namespace outboard::device::cpu
