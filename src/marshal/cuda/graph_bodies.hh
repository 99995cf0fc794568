// The bodies of the graph chapter's requests and replies, like those of bodies.hh. Values; no thread rules.
#pragma once

#include "marshal/cuda/bodies.hh"

namespace outboard::marshal {

struct instantiate_body {
  std::uint64_t graph = 0, exec = 0, flags = 0, stream = 0;
  bool per_thread = false;
  OUTBOARD_FIELDS(graph, exec, flags, stream, per_thread)
};

/// What a launch needs of the client: bytes of these host boxes before, bytes into those behind, and how many
/// host functions it runs.
struct instantiate_reply {
  std::int32_t result = 0;
  std::uint64_t bad_node = 0;
  std::vector<std::uint64_t> sources, targets;
  std::uint64_t functions = 0;
  OUTBOARD_FIELDS(result, bad_node, sources, targets, functions)
};

/// cuGraphExecUpdate.
struct update_body {
  std::uint64_t exec = 0, graph = 0;
  OUTBOARD_FIELDS(exec, graph)
};

struct update_reply {
  std::int32_t result = 0;
  std::uint64_t bad_node = 0, bad_from = 0;
  std::vector<std::uint64_t> sources, targets;
  std::uint64_t functions = 0;
  OUTBOARD_FIELDS(result, bad_node, bad_from, sources, targets, functions)
};

/// graph_feed: the rest are bytes for the sources of the executable graph, one source behind the other.
struct feed_body {
  std::uint64_t exec = 0;
  OUTBOARD_FIELDS(exec)
};

struct graph_launch_body {
  std::uint64_t exec = 0, stream = 0;
  bool per_thread = false;
  OUTBOARD_FIELDS(exec, stream, per_thread)
};

/// Enumerations: nodes of a graph, its roots, its edges; what a node depends on, and what depends on it.
struct nodes_body {
  std::uint64_t subject = 0, capacity = 0;
  OUTBOARD_FIELDS(subject, capacity)
};

/// `others` and `edges` (CUgraphEdgeData) only of edges.
struct nodes_reply {
  std::uint64_t count = 0;
  std::vector<std::uint64_t> nodes, others, edges;
  OUTBOARD_FIELDS(count, nodes, others, edges)
};

struct edges_body {
  std::uint64_t graph = 0;
  std::vector<std::uint64_t> from, to, edges;
  OUTBOARD_FIELDS(graph, from, to, edges)
};

/// The parameters of a node by its type (CUgraphNodeType). `subject`: kernel, host function, child graph,
/// event, address, conditional handle; `numbers` and `bytes`: see docs/wire.md.
struct node_parameters {
  std::int32_t type = 0;
  std::uint64_t context = 0, subject = 0;
  std::array<std::uint32_t, 3> grid{}, block{};
  std::uint32_t shared = 0;
  std::vector<std::uint64_t> numbers;
  std::vector<std::uint8_t> bytes;
  OUTBOARD_FIELDS(type, context, subject, grid, block, shared, numbers, bytes)
};

struct add_node_body {
  std::uint64_t graph = 0;
  std::vector<std::uint64_t> dependencies, edges;
  node_parameters node;
  OUTBOARD_FIELDS(graph, dependencies, edges, node.type, node.context, node.subject, node.grid, node.block,
                  node.shared, node.numbers, node.bytes)
};

/// `address`: of an allocation; `graphs`: the child, or the bodies of a conditional node.
struct add_node_reply {
  std::uint64_t node = 0, address = 0;
  std::vector<std::uint64_t> graphs;
  OUTBOARD_FIELDS(node, address, graphs)
};

/// exec 0: the node of the graph itself.
struct set_node_body {
  std::uint64_t exec = 0, handle = 0;
  node_parameters node;
  OUTBOARD_FIELDS(exec, handle, node.type, node.context, node.subject, node.grid, node.block, node.shared,
                  node.numbers, node.bytes)
};

struct get_node_reply {
  std::uint64_t graph = 0;
  node_parameters node;
  OUTBOARD_FIELDS(graph, node.type, node.context, node.subject, node.grid, node.block, node.shared,
                  node.numbers, node.bytes)
};

/// Dependencies in one request, far below a frame.
inline constexpr std::size_t max_graph_edges = 1 << 19;

/// Attributes of kernel nodes and of streams, as launch_attribute has them; `set`: the value is given.
struct attribute_body {
  std::uint64_t subject = 0;
  std::uint32_t id = 0;
  bool set = false, per_thread = false;
  std::array<std::uint8_t, 64> value{};
  OUTBOARD_FIELDS(subject, id, set, per_thread, value)
};

struct attribute_reply {
  std::array<std::uint8_t, 64> value{};
  OUTBOARD_FIELDS(value)
};

/// References to user objects; of a conditional handle: object is the context, count its first value.
struct user_object_body {
  std::uint64_t object = 0, graph = 0, id = 0;
  std::uint32_t count = 0, flags = 0;
  OUTBOARD_FIELDS(object, graph, id, count, flags)
};

struct text_reply {
  std::string text;
  OUTBOARD_FIELDS(text)
};

/// cuStreamBatchMemOp: `operations` as the driver has them, 48 bytes each.
struct memory_operations_body {
  std::uint64_t stream = 0;
  std::uint32_t flags = 0;
  bool per_thread = false;
  std::vector<std::uint8_t> operations;
  OUTBOARD_FIELDS(stream, flags, per_thread, operations)
};

/// A copy between the device and a host box of the client that a stream under capture takes in.
struct captured_copy_body {
  std::uint64_t address = 0, id = 0, size = 0, stream = 0;
  bool to_host = false, per_thread = false;
  OUTBOARD_FIELDS(address, id, size, stream, to_host, per_thread)
};

/// cuMemcpy3DAsync_v2: a copy of any shape that a stream under capture takes in; one side is a host box of
/// the client.
struct captured_box_body {
  std::uint64_t stream = 0;
  bool per_thread = false;
  node_parameters node;
  OUTBOARD_FIELDS(stream, per_thread, node.type, node.context, node.subject, node.grid, node.block,
                  node.shared, node.numbers, node.bytes)
};

}  // namespace outboard::marshal
