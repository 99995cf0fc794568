// How the client calls the nodes of a graph that is made executable: what their work's records name.
#pragma once

#include <cstdint>

#include "api/cuda/headers.hh"

namespace outboard::device {

/// A recorder asks while the device makes the executable graph, because the graph may be gone when the
/// records of its nodes are taken (work_record::graph_node). On the thread that carries out the request.
class node_names {
 public:
  /// 0: the client has never been told of this node.
  virtual std::uint64_t name_of(CUgraphNode node) const = 0;

 protected:
  ~node_names() = default;
};

/// nullptr: this thread makes no graph executable. The back-end sets it before it calls the device.
inline constinit thread_local const node_names* nodes_under_way = nullptr;

}  // namespace outboard::device
