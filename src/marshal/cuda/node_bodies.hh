// Nodes of graphs as they travel: one struct for each kind, and node_parameters, which holds any of them.
// Values; no thread rules.
#pragma once

#include <array>
#include <cstdint>
#include <variant>
#include <vector>

#include "api/cuda/headers.hh"
#include "marshal/fields.hh"

namespace outboard::marshal {

/// `kernel`: the handle of a kernel or function; `parameters` in the layout that the kernel reads.
struct kernel_node {
  static constexpr auto type = CU_GRAPH_NODE_TYPE_KERNEL;
  std::uint64_t context = 0, kernel = 0;
  std::array<std::uint32_t, 3> grid{}, block{};
  std::uint32_t shared = 0;
  std::vector<std::uint8_t> parameters{};
  OUTBOARD_FIELDS(context, kernel, grid, block, shared, parameters)
};

/// One end of a copy. `box`: the client's number for its host memory (then the rest of the place is 0);
/// `memory`: CUmemorytype.
struct copy_side {
  std::uint64_t x = 0, y = 0, z = 0, level = 0;
  std::uint32_t memory = 0;
  std::uint64_t box = 0, address = 0, array = 0, pitch = 0, height = 0;
  OUTBOARD_FIELDS(x, y, z, level, memory, box, address, array, pitch, height)
};

struct copy_node {
  static constexpr auto type = CU_GRAPH_NODE_TYPE_MEMCPY;
  std::uint64_t context = 0;
  copy_side from{}, to{};
  std::uint64_t width = 0, height = 0, depth = 0;
  OUTBOARD_FIELDS(context, from, to, width, height, depth)
};

struct memset_node {
  static constexpr auto type = CU_GRAPH_NODE_TYPE_MEMSET;
  std::uint64_t context = 0, address = 0, pitch = 0;
  std::uint32_t value = 0, element_size = 0;
  std::uint64_t width = 0, height = 0;
  OUTBOARD_FIELDS(context, address, pitch, value, element_size, width, height)
};

/// `function`: the client's number for it.
struct host_node {
  static constexpr auto type = CU_GRAPH_NODE_TYPE_HOST;
  std::uint64_t function = 0;
  OUTBOARD_FIELDS(function)
};

/// In a request the graph that is cloned, in a reply the node's own graph.
struct child_node {
  static constexpr auto type = CU_GRAPH_NODE_TYPE_GRAPH;
  std::uint64_t graph = 0;
  OUTBOARD_FIELDS(graph)
};

struct empty_node {
  static constexpr auto type = CU_GRAPH_NODE_TYPE_EMPTY;
  template <class Visit>
  void fields(Visit&) {}
};

struct wait_node {
  static constexpr auto type = CU_GRAPH_NODE_TYPE_WAIT_EVENT;
  std::uint64_t event = 0;
  OUTBOARD_FIELDS(event)
};

struct record_node {
  static constexpr auto type = CU_GRAPH_NODE_TYPE_EVENT_RECORD;
  std::uint64_t event = 0;
  OUTBOARD_FIELDS(event)
};

/// CUmemPoolProps without its pointer, and the size. `address`: what the node got (in replies and records);
/// `access`: an array of CUmemAccessDesc.
struct alloc_node {
  static constexpr auto type = CU_GRAPH_NODE_TYPE_MEM_ALLOC;
  std::int32_t allocation_type = 0, handle_types = 0, location_type = 0, location = 0;
  std::uint64_t max_size = 0;
  std::uint16_t usage = 0;
  std::uint64_t size = 0, address = 0;
  std::vector<std::uint8_t> access{};
  OUTBOARD_FIELDS(allocation_type, handle_types, location_type, location, max_size, usage, size, address,
                  access)
};

struct free_node {
  static constexpr auto type = CU_GRAPH_NODE_TYPE_MEM_FREE;
  std::uint64_t address = 0;
  OUTBOARD_FIELDS(address)
};

/// `operations`: an array of CUstreamBatchMemOpParams.
struct operations_node {
  static constexpr auto type = CU_GRAPH_NODE_TYPE_BATCH_MEM_OP;
  std::uint64_t context = 0;
  std::uint32_t flags = 0;
  std::vector<std::uint8_t> operations{};
  OUTBOARD_FIELDS(context, flags, operations)
};

/// `condition`: the handle that kernels use; `kind`: CUgraphConditionalNodeType; `size`: number of bodies.
struct conditional_node {
  static constexpr auto type = CU_GRAPH_NODE_TYPE_CONDITIONAL;
  std::uint64_t context = 0, condition = 0;
  std::int32_t kind = 0;
  std::uint32_t size = 0;
  OUTBOARD_FIELDS(context, condition, kind, size)
};

/// Any of them: i32 CUgraphNodeType, then the struct. Any other type is a misfit.
struct node_parameters {
  std::variant<empty_node, kernel_node, copy_node, memset_node, host_node, child_node, wait_node, record_node,
               alloc_node, free_node, operations_node, conditional_node>
      node;

  CUgraphNodeType type() const {
    return std::visit([](const auto& n) { return n.type; }, node);
  }

  void put(wire::writer& w) const {
    w.put(static_cast<std::int32_t>(type()));
    std::visit([&](const auto& n) { put_body(w, n); }, node);
  }
  void take(wire::reader& r) {
    const auto arrived = r.get<std::int32_t>();
    if (!take_if(r, arrived, node)) r.fail();
  }

 private:
  template <class... Nodes>
  static bool take_if(wire::reader& r, std::int32_t arrived, std::variant<Nodes...>& into) {
    return ((Nodes::type == arrived && (into = take_body<Nodes>(r), true)) || ...);
  }
};

}  // namespace outboard::marshal
