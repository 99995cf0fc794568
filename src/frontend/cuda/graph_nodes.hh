// Parameters of graph nodes between the program's structs and the wire: handles checked, kernel parameters
// packed, host memory and functions replaced by numbers. Any thread; what the program gets pointers into is
// kept per node.
#pragma once

#include "frontend/cuda/objects.hh"
#include "frontend/cuda/requests.hh"
#include "marshal/cuda/graph_bodies.hh"

namespace outboard::frontend::cuda {

/// The worker knows the graphs and nodes that it named itself.
inline bool graph_ok(const lane& own, CUgraph graph) {
  return wire::handle{value_of(graph)}.minted() || find_object<object>(own, graph);
}
inline bool node_ok(CUgraphNode node) { return wire::handle{value_of(node)}.minted(); }

/// An executable graph, and what its launches need of us.
struct exec_info final : object {
  std::mutex mutex;  // guards what follows
  std::vector<std::uint64_t> sources, targets;
  std::uint64_t functions = 0;
};

using marshal::node_parameters;

/// Each fills `out` or gives the driver's code. Numbers made for the program's memory and functions are added
/// to `made`, so that they can be forgotten if the server refuses.
CUresult put_kernel(lane& own, const CUDA_KERNEL_NODE_PARAMS_v2& p, node_parameters& out);
CUresult put_copy(const lane& own, const CUDA_MEMCPY3D& p, CUcontext context, node_parameters& out,
                  std::vector<std::uint64_t>& made);
/// put_copy() for a copy that is not from host memory to host memory.
CUresult put_copy_node(const lane& own, const CUDA_MEMCPY3D& p, CUcontext context, marshal::copy_node& out,
                       std::vector<std::uint64_t>& made);
/// From host memory to host memory: the program's own processor does it, as a host function in its place.
bool copies_on_host(const lane& own, const CUDA_MEMCPY3D& p);
CUresult put_host_copy(const lane& own, const CUDA_MEMCPY3D& p, node_parameters& out,
                       std::vector<std::uint64_t>& made);
/// The copy that this host function is; null: another one.
const CUDA_MEMCPY3D* host_copy_of(const lane& own, std::uint64_t function);
/// The number of a function that does it, with the mark that host_copy_of() knows. 0: no sound copy.
std::uint64_t add_host_copy(const lane& own, const CUDA_MEMCPY3D& p);
CUresult put_fill(const lane& own, const CUDA_MEMSET_NODE_PARAMS_v2& p, node_parameters& out);
CUresult put_host(const lane& own, CUhostFn function, void* data, node_parameters& out,
                  std::vector<std::uint64_t>& made);
CUresult put_wait(const lane& own, CUevent event, node_parameters& out);
CUresult put_record(const lane& own, CUevent event, node_parameters& out);
CUresult put_child(const lane& own, CUgraph graph, node_parameters& out);
CUresult put_allocation(const lane& own, const CUDA_MEM_ALLOC_NODE_PARAMS_v2& p, node_parameters& out);
CUresult put_operations(const lane& own, CUcontext context, const CUstreamBatchMemOpParams* operations,
                        unsigned count, unsigned flags, node_parameters& out);
CUresult put_any(lane& own, const CUgraphNodeParams& p, node_parameters& out,
                 std::vector<std::uint64_t>& made);

/// Back into the program's structs; false: the server's answer makes no sense.
bool take_kernel(lane& own, CUgraphNode node, std::uint64_t graph, const marshal::kernel_node& from,
                 CUDA_KERNEL_NODE_PARAMS_v2& p);
void take_copy(const lane& own, const marshal::copy_node& from, CUDA_MEMCPY3D& p);
void take_fill(const marshal::memset_node& from, CUDA_MEMSET_NODE_PARAMS_v2& p);
bool take_host(const lane& own, const marshal::host_node& from, CUDA_HOST_NODE_PARAMS_v1& p);
void take_allocation(CUgraphNode node, std::uint64_t graph, const marshal::alloc_node& from,
                     CUDA_MEM_ALLOC_NODE_PARAMS_v2& p);
bool take_operations(CUgraphNode node, std::uint64_t graph, const marshal::operations_node& from,
                     CUDA_BATCH_MEM_OP_NODE_PARAMS_v1& p);

/// The handles of a conditional node's bodies where the program looks for them: they live as long as the
/// node.
CUresult keep_bodies(const lane& own, CUgraphNode node, const std::vector<std::uint64_t>& graphs,
                     CUgraphNodeParams& p);

/// A host function that stands for a copy: to the program a copy node.
bool is_host_copy(lane& own, CUgraphNode node);

/// What launches of this executable graph need from now on, as the reply says.
CUresult learn_needs(const lane& own, marshal::instantiate_reply&& reply, CUgraphExec exec);

/// Pointers that the program was given for nodes of this graph, or for this node, are gone.
void forget_given(std::uint64_t graph, std::uint64_t node);

}  // namespace outboard::frontend::cuda
