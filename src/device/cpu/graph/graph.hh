// Graphs as the program builds or captures them, and what is made of them to be launched. Everything here but
// a running plan is guarded by machine::graphs_mutex; nodes belong to their graph, and their handles die with
// it.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <variant>
#include <vector>

#include "device/cpu/graph/graph_memory.hh"
#include "device/cpu/launch.hh"

namespace outboard::device::cpu {

struct event_object;
struct graph_object;
using graph_ptr = std::shared_ptr<graph_object>;

/// `about` is what the program asks for; the body does it.
struct copy_work {
  CUDA_MEMCPY3D about{};
  context_ptr owner;
  std::function<CUresult()> run;
};
struct fill_work {
  CUDA_MEMSET_NODE_PARAMS_v2 about{};
  context_ptr owner;
  std::function<CUresult()> run;
};
struct host_work {
  CUhostFn function = nullptr;
  void* data = nullptr;
};
struct child_work {
  graph_ptr graph;
};
/// Of record and wait nodes.
struct event_work {
  CUevent handle = nullptr;
  std::shared_ptr<event_object> event;
};
struct allocation_work {
  CUDA_MEM_ALLOC_NODE_PARAMS_v2 about{};
  std::vector<CUmemAccessDesc> access;
  graph_block_ptr block;
};
struct release_work {
  CUdeviceptr address = 0;
};
struct memory_operations_work {
  context_ptr owner;
  std::vector<CUstreamBatchMemOpParams> operations;
  unsigned flags = 0;
};

/// What kernels set by a conditional handle.
struct conditional_value {
  std::atomic<unsigned> value{0};
  unsigned initial = 0;
  bool assign_initial = false;  ///< at each launch
};
struct conditional_work {
  std::shared_ptr<conditional_value> value;
  CUgraphConditionalNodeType type = CU_GRAPH_COND_TYPE_IF;
  std::vector<graph_ptr> bodies;
  std::vector<CUgraph> handles;  ///< as the program was told
};

/// Nothing (monostate) is what an empty node does.
using node_work =
    std::variant<std::monostate, kernel_work, copy_work, fill_work, host_work, child_work, event_work,
                 allocation_work, release_work, memory_operations_work, conditional_work>;

struct graph_node {
  CUgraphNodeType type = CU_GRAPH_NODE_TYPE_EMPTY;
  std::uint64_t handle = 0;
  graph_object* graph = nullptr;
  node_work work;
  std::vector<graph_node*> before, after;  ///< edges, in the order in which they were made
  std::vector<void*> told;                 ///< parameter pointers that the program was given
};

struct user_object {
  std::uint64_t handle = 0;
  void* data = nullptr;
  CUhostFn destroy = nullptr;
  user_object() = default;
  ~user_object();
  user_object(const user_object&) = delete;
  user_object& operator=(const user_object&) = delete;
};
using user_object_ptr = std::shared_ptr<user_object>;

/// What a user object handle stands for: the references that the program holds by itself.
struct user_reference {
  std::weak_ptr<user_object> object;
  user_object_ptr held;  ///< while count is not 0
  unsigned count = 0;
};

struct graph_object {
  std::uint64_t handle = 0;
  bool owned = false;                                          ///< a child or a body: dies with its node
  std::vector<std::shared_ptr<graph_node>> nodes;              ///< in the order of creation
  std::map<user_object_ptr, unsigned> objects;                 ///< references it holds
  std::vector<std::shared_ptr<conditional_value>> conditions;  ///< made for it; nodes and plans keep them too
  std::map<std::uint64_t, std::uint64_t> clones;  ///< of a clone: original node to node, by handle
  ~graph_object();
};

/// Checks what a driver refuses when the node is made. copy_entries.cc
CUresult prepare_copy(const context_ptr& c, const CUDA_MEMCPY3D& p, copy_work& out);
CUresult prepare_fill(const context_ptr& c, const CUDA_MEMSET_NODE_PARAMS_v2& p, fill_work& out);

/// A graph with a handle.
graph_ptr make_graph(bool owned);
/// Adds a node behind others of the same graph. The work's child graphs become the node's own.
graph_node* add_node(graph_object& graph, CUgraphNodeType type, node_work work,
                     const std::vector<graph_node*>& before);
void remove_node(graph_node& node);
/// False: the edge exists.
bool add_edge(graph_node& from, graph_node& to);
bool remove_edge(graph_node& from, graph_node& to);
graph_ptr clone_graph(const graph_object& original, bool owned);
/// Nodes that allocate or free: such a graph cannot be copied, nor be a part of another.
bool has_memory(const graph_object& graph);
/// Every node after those before it; empty where edges make a circle.
std::vector<graph_node*> ordered(const graph_object& graph);
/// The type and, but for parameters, the shape of both are the same.
bool same_type(const graph_node& a, const graph_node& b);

/// One node, ready to run.
struct plan_step {
  std::uint64_t node = 0;  ///< handle in the graph that it was made from
  CUgraphNodeType type = CU_GRAPH_NODE_TYPE_EMPTY;
  node_work work;
  bool enabled = true;
  std::vector<std::shared_ptr<const struct plan>> bodies;  ///< of a child graph or conditional node
  std::uint64_t shown = 0;                                 ///< what records of its work call the node
};
/// What a launch runs: steps one after the other, each after those it depends on. Never changed once shared.
struct plan {
  std::vector<plan_step> steps;
  std::vector<user_object_ptr> objects;                        ///< kept until the last launch is over
  std::vector<std::shared_ptr<conditional_value>> conditions;  ///< that launches begin with their first value
};
using plan_ptr = std::shared_ptr<const plan>;

struct graph_exec {
  std::uint64_t handle = 0;
  unsigned long long flags = 0;
  plan_ptr work;
  point_ptr last;  ///< end of the latest launch: launches of one never overlap
};

/// nullptr: the edges make a circle.
std::shared_ptr<plan> make_plan(const graph_object& graph);
CUresult launch_plan(graph_exec& exec, const stream_ptr& on);

}  // namespace outboard::device::cpu
