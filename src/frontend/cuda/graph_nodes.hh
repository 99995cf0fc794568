// Parameters of graph nodes between the program's structs and the wire: handles are checked, kernel
// parameters packed, host memory and functions replaced by numbers. Any thread; what the program gets
// pointers into is kept per node.
#pragma once

#include <array>
#include <unordered_map>

#include "frontend/cuda/objects.hh"
#include "frontend/cuda/requests.hh"
#include "marshal/cuda/graph_bodies.hh"

namespace outboard::frontend::cuda {

/// The worker knows the graphs and nodes that it named itself.
inline bool graph_ok(CUgraph graph) {
  return wire::handle{value_of(graph)}.minted() || find_object<object>(graph);
}
inline bool node_ok(CUgraphNode node) { return wire::handle{value_of(node)}.minted(); }

/// Everything of a kernel node except the values of the kernel's parameters.
struct kernel_node_shape {
  std::uint64_t kernel = 0, context = 0, current = 0;
  std::array<std::uint32_t, 3> grid{}, block{};
  std::uint64_t shared = 0, shared_limit = 0, parameter_bytes = 0;
  std::uint64_t destroyed = 0;  ///< how many graphs and nodes had been destroyed
  bool operator==(const kernel_node_shape&) const = default;
};

/// An executable graph, and what its launches need of us.
struct exec_info final : object {
  std::mutex mutex;  // guards what follows
  std::vector<std::uint64_t> sources, targets;
  std::uint64_t functions = 0;
  /// What the driver accepted for a node, by its handle: it accepts the same shape again with other values.
  std::unordered_map<std::uint64_t, kernel_node_shape> taken;
};

using marshal::node_parameters;

/// Each fills `out` or gives the driver's code. Numbers made for the program's memory and functions are added
/// to `made`, so that they can be forgotten if the server refuses.
CUresult put_kernel(lane& own, const CUDA_KERNEL_NODE_PARAMS_v2& p, node_parameters& out);
CUresult put_copy(const CUDA_MEMCPY3D& p, CUcontext context, node_parameters& out,
                  std::vector<std::uint64_t>& made);
/// From host memory to host memory: the program's own processor does it, as a host function in its place.
bool copies_on_host(const CUDA_MEMCPY3D& p);
CUresult put_host_copy(const CUDA_MEMCPY3D& p, node_parameters& out, std::vector<std::uint64_t>& made);
/// The copy that this host function is; null: another one.
const CUDA_MEMCPY3D* host_copy_of(std::uint64_t function);
/// The number of a function that does it, with the mark that host_copy_of() knows. 0: no sound copy.
std::uint64_t add_host_copy(const CUDA_MEMCPY3D& p);
CUresult put_fill(const CUDA_MEMSET_NODE_PARAMS_v2& p, node_parameters& out);
CUresult put_host(CUhostFn function, void* data, node_parameters& out, std::vector<std::uint64_t>& made);
CUresult put_event(CUgraphNodeType type, CUevent event, node_parameters& out);
CUresult put_child(CUgraph graph, node_parameters& out);
CUresult put_allocation(const CUDA_MEM_ALLOC_NODE_PARAMS_v2& p, node_parameters& out);
CUresult put_operations(CUcontext context, const CUstreamBatchMemOpParams* operations, unsigned count,
                        unsigned flags, node_parameters& out);
CUresult put_any(lane& own, const CUgraphNodeParams& p, node_parameters& out,
                 std::vector<std::uint64_t>& made);

/// Back into the program's structs; false: the server's answer makes no sense.
bool take_kernel(CUgraphNode node, std::uint64_t graph, const node_parameters& from,
                 CUDA_KERNEL_NODE_PARAMS_v2& p);
bool take_copy(const node_parameters& from, CUDA_MEMCPY3D& p);
bool take_fill(const node_parameters& from, CUDA_MEMSET_NODE_PARAMS_v2& p);
bool take_host(const node_parameters& from, CUDA_HOST_NODE_PARAMS_v1& p);
bool take_allocation(CUgraphNode node, std::uint64_t graph, const node_parameters& from,
                     CUDA_MEM_ALLOC_NODE_PARAMS_v2& p);
bool take_operations(CUgraphNode node, std::uint64_t graph, const node_parameters& from,
                     CUDA_BATCH_MEM_OP_NODE_PARAMS_v1& p);

/// The handles of a conditional node's bodies where the program looks for them: they live as long as the
/// node.
CUresult keep_bodies(CUgraphNode node, const std::vector<std::uint64_t>& graphs, CUgraphNodeParams& p);

/// Whether the node is a host function that stands for a copy; the program sees a copy node.
bool is_host_copy(lane& own, CUgraphNode node);

/// The shape that the node would have in this lane now.
kernel_node_shape shape_of(const lane& own, const node_parameters& kernel);

/// What launches of this executable graph need from now on, as the reply says. nullptr: another thread has
/// destroyed it.
CUresult learn_needs(marshal::instantiate_reply&& reply, exec_info* info);

/// Pointers that the program was given for nodes of this graph, or for this node, are gone.
void forget_told(std::uint64_t graph, std::uint64_t node);

}  // namespace outboard::frontend::cuda
