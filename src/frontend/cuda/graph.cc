#include "frontend/cuda/ends.hh"
#include "frontend/cuda/gate.hh"
#include "frontend/cuda/objects.hh"
#include "frontend/cuda/requests.hh"
#include "marshal/bodies.hh"

namespace outboard::frontend::cuda {
namespace {

/// The worker knows the graphs that it named itself (cuStreamGetCaptureInfo).
bool graph_ok(CUgraph graph) { return wire::handle{value_of(graph)}.minted() || find_object<object>(graph); }

CUresult instantiate(lane& own, CUgraphExec* exec, CUgraph graph, unsigned long long flags) {
  if (!exec) return CUDA_ERROR_INVALID_VALUE;
  if (!graph_ok(graph)) return CUDA_ERROR_INVALID_HANDLE;
  handle_table& table = process::instance().handles(api::handle_kind::graph_exec);
  auto info = std::make_unique<object>();
  info->context = own.context_handle();
  const std::uint64_t made = table.reserve(std::move(info));
  if (!made) return CUDA_ERROR_OUT_OF_MEMORY;
  request r(api::opcode::cuGraphInstantiateWithFlags, own);
  marshal::put_body(r.body(), marshal::instantiate_body{value_of(graph), made, flags});
  if (const CUresult code = r.call(); code != CUDA_SUCCESS) return table.release(made), code;
  *exec = reinterpret_cast<CUgraphExec>(made);
  return CUDA_SUCCESS;
}

/// The old forms say where instantiation failed; we know only that it did.
CUresult instantiate_telling(lane& own, CUgraphExec* exec, CUgraph graph, CUgraphNode* error_node, char* log,
                             std::size_t log_size) {
  const CUresult code = instantiate(own, exec, graph, 0);
  if (error_node) *error_node = nullptr;
  if (log && log_size) *log = '\0';
  return code;
}

}  // namespace

namespace ends {

CUresult cuGraphInstantiateWithFlags(CUgraphExec* exec, CUgraph graph, unsigned long long flags) {
  lane& own = this_lane();
  const CUresult code = gate<api::opcode::cuGraphInstantiateWithFlags>(own);
  return code == CUDA_SUCCESS ? instantiate(own, exec, graph, flags) : code;
}

CUresult cuGraphInstantiate(CUgraphExec* exec, CUgraph graph, CUgraphNode* error_node, char* log,
                            std::size_t log_size) {
  lane& own = this_lane();
  const CUresult code = gate<api::opcode::cuGraphInstantiate>(own);
  return code == CUDA_SUCCESS ? instantiate_telling(own, exec, graph, error_node, log, log_size) : code;
}

CUresult cuGraphInstantiate_v2(CUgraphExec* exec, CUgraph graph, CUgraphNode* error_node, char* log,
                               std::size_t log_size) {
  lane& own = this_lane();
  const CUresult code = gate<api::opcode::cuGraphInstantiate_v2>(own);
  return code == CUDA_SUCCESS ? instantiate_telling(own, exec, graph, error_node, log, log_size) : code;
}

CUresult cuGraphGetNodes(CUgraph graph, CUgraphNode* nodes, std::size_t* count) {
  lane& own = this_lane();
  if (const CUresult code = gate<api::opcode::cuGraphGetNodes>(own); code != CUDA_SUCCESS) return code;
  if (!count) return CUDA_ERROR_INVALID_VALUE;
  if (!graph_ok(graph)) return CUDA_ERROR_INVALID_HANDLE;
  request r(api::opcode::cuGraphGetNodes, own);
  marshal::put_body(r.body(), marshal::nodes_body{value_of(graph), nodes ? *count : 0});
  if (const CUresult code = r.call(); code != CUDA_SUCCESS) return code;
  wire::reader from = r.reply();
  const auto reply = marshal::take_body<marshal::nodes_reply>(from);
  if (!from.finished() || (nodes && reply.nodes.size() > *count)) return CUDA_ERROR_UNKNOWN;
  if (nodes) {
    // Room beyond the graph's nodes is set to null, as the driver does.
    for (std::size_t i = 0; i < *count; ++i) {
      nodes[i] = i < reply.nodes.size() ? reinterpret_cast<CUgraphNode>(reply.nodes[i]) : nullptr;
    }
    *count = reply.nodes.size();
  } else {
    *count = static_cast<std::size_t>(reply.count);
  }
  return CUDA_SUCCESS;
}

}  // namespace ends
}  // namespace outboard::frontend::cuda
