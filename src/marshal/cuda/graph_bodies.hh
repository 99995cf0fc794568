// The bodies of the graph chapter's requests and replies, like those of bodies.hh. Values; no thread rules.
#pragma once

#include "marshal/cuda/bodies.hh"
#include "marshal/cuda/launch_bodies.hh"
#include "marshal/cuda/node_bodies.hh"

namespace outboard::marshal {

struct instantiate_body {
  std::uint64_t graph = 0, exec = 0, flags = 0, stream = 0;
  bool per_thread = false;
  OUTBOARD_FIELDS(graph, exec, flags, stream, per_thread)
};
OUTBOARD_MESSAGE(instantiate_body)

/// What a launch needs from the client: the bytes of some host boxes before it, room for bytes in others
/// after it, and the number of host functions that it runs.
struct instantiate_reply {
  std::int32_t result = 0;
  std::uint64_t bad_node = 0;
  std::vector<std::uint64_t> sources{}, targets{};
  std::uint64_t functions = 0;
  OUTBOARD_FIELDS(result, bad_node, sources, targets, functions)
};
OUTBOARD_MESSAGE(instantiate_reply)

/// cuGraphExecUpdate.
struct update_body {
  std::uint64_t exec = 0, graph = 0;
  OUTBOARD_FIELDS(exec, graph)
};
OUTBOARD_MESSAGE(update_body)

struct update_reply {
  std::int32_t result = 0;
  std::uint64_t bad_node = 0, bad_from = 0;
  std::vector<std::uint64_t> sources{}, targets{};
  std::uint64_t functions = 0;
  OUTBOARD_FIELDS(result, bad_node, bad_from, sources, targets, functions)
};
OUTBOARD_MESSAGE(update_reply)

/// graph_feed: the fields are followed by bytes for the sources of the executable graph, one source after the
/// other.
struct feed_body {
  std::uint64_t exec = 0;
  OUTBOARD_FIELDS(exec)
};
OUTBOARD_MESSAGE(feed_body)

struct graph_launch_body {
  std::uint64_t exec = 0, stream = 0;
  bool per_thread = false;
  OUTBOARD_FIELDS(exec, stream, per_thread)
};
OUTBOARD_MESSAGE(graph_launch_body)

/// Enumerations: the nodes, roots or edges of a graph; the dependencies or dependents of a node.
struct nodes_body {
  std::uint64_t subject = 0, capacity = 0;
  OUTBOARD_FIELDS(subject, capacity)
};
OUTBOARD_MESSAGE(nodes_body)

/// `others` and `edges` (CUgraphEdgeData) are filled only for edges.
struct nodes_reply {
  std::uint64_t count = 0;
  std::vector<std::uint64_t> nodes{}, others{}, edges{};
  OUTBOARD_FIELDS(count, nodes, others, edges)
};
OUTBOARD_MESSAGE(nodes_reply)

struct edges_body {
  std::uint64_t graph = 0;
  std::vector<std::uint64_t> from{}, to{}, edges{};
  OUTBOARD_FIELDS(graph, from, to, edges)
};
OUTBOARD_MESSAGE(edges_body)

struct add_node_body {
  std::uint64_t graph = 0;
  std::vector<std::uint64_t> dependencies{}, edges{};
  node_parameters node{};
  OUTBOARD_FIELDS(graph, dependencies, edges, node)
};
OUTBOARD_MESSAGE(add_node_body)

/// `address` is that of an allocation; `graphs` are the child, or the bodies of a conditional node.
struct add_node_reply {
  std::uint64_t node = 0, address = 0;
  std::vector<std::uint64_t> graphs{};
  OUTBOARD_FIELDS(node, address, graphs)
};
OUTBOARD_MESSAGE(add_node_reply)

/// With exec 0 the node is in the graph itself.
struct set_node_body {
  std::uint64_t exec = 0, handle = 0;
  node_parameters node{};
  OUTBOARD_FIELDS(exec, handle, node)
};
OUTBOARD_MESSAGE(set_node_body)

struct get_node_reply {
  std::uint64_t graph = 0;
  node_parameters node{};
  OUTBOARD_FIELDS(graph, node)
};
OUTBOARD_MESSAGE(get_node_reply)

/// Most dependencies in one request; they take far less than a frame.
inline constexpr std::size_t max_graph_edges = 1 << 19;

/// Attributes of kernel nodes and of streams, in the form of launch_attribute; `set`: a value is given.
struct attribute_body {
  std::uint64_t subject = 0;
  std::uint32_t id = 0;
  bool set = false, per_thread = false;
  std::array<std::uint8_t, 64> value{};
  OUTBOARD_FIELDS(subject, id, set, per_thread, value)
};
OUTBOARD_MESSAGE(attribute_body)

struct attribute_reply {
  std::array<std::uint8_t, 64> value{};
  OUTBOARD_FIELDS(value)
};
OUTBOARD_MESSAGE(attribute_reply)

/// References to user objects. For a conditional handle, `object` is the context and `count` the first value.
struct user_object_body {
  std::uint64_t object = 0, graph = 0, id = 0;
  std::uint32_t count = 0, flags = 0;
  OUTBOARD_FIELDS(object, graph, id, count, flags)
};
OUTBOARD_MESSAGE(user_object_body)

struct text_reply {
  std::string text{};
  OUTBOARD_FIELDS(text)
};
OUTBOARD_MESSAGE(text_reply)

/// cuStreamBatchMemOp: `operations` are in the driver's form, 48 bytes each.
struct memory_operations_body {
  std::uint64_t stream = 0;
  std::uint32_t flags = 0;
  bool per_thread = false;
  std::vector<std::uint8_t> operations{};
  OUTBOARD_FIELDS(stream, flags, per_thread, operations)
};
OUTBOARD_MESSAGE(memory_operations_body)

/// A copy between the device and one of the client's host boxes, made in a stream under capture.
struct captured_copy_body {
  std::uint64_t address = 0, id = 0, size = 0, stream = 0;
  bool to_host = false, per_thread = false;
  OUTBOARD_FIELDS(address, id, size, stream, to_host, per_thread)
};
OUTBOARD_MESSAGE(captured_copy_body)

/// cuMemcpy3DAsync_v2: a copy of any shape, made in a stream under capture; one side is one of the client's
/// host boxes.
struct captured_box_body {
  std::uint64_t stream = 0;
  bool per_thread = false;
  copy_node copy{};
  OUTBOARD_FIELDS(stream, per_thread, copy)
};
OUTBOARD_MESSAGE(captured_box_body)

}  // namespace outboard::marshal
