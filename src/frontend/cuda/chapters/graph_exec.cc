// Chapter graph, executable graphs: made, changed, launched. A launch sends along what its copies read of the
// program's memory now; what they write arrives before any call that learns of its completion.
#include "frontend/cuda/chapters/capture.hh"
#include "frontend/cuda/ends.hh"
#include "frontend/cuda/graph_nodes.hh"

namespace outboard::frontend::cuda {
namespace {

constexpr std::size_t piece = 8u << 20;

struct order {
  unsigned long long flags = 0;
  CUstream stream = nullptr;
  bool per_thread = false;
};

struct verdict {
  std::int32_t result = CUDA_GRAPH_INSTANTIATE_ERROR;
  CUgraphNode bad_node = nullptr;
};

CUresult instantiate(lane& own, CUgraphExec* exec, CUgraph graph, const order& how, verdict& said) {
  if (!exec || !graph_ok(own, graph)) return CUDA_ERROR_INVALID_VALUE;
  if (!stream_ok(own, how.stream)) return CUDA_ERROR_INVALID_HANDLE;
  handle_table& table = own.state().handles[api::handle_kind::graph_exec];
  auto info = std::make_unique<exec_info>();
  info->context = own.context_handle();
  const std::uint64_t made = table.reserve(std::move(info));
  if (!made) return CUDA_ERROR_OUT_OF_MEMORY;
  std::optional<marshal::instantiate_reply> reply;
  CUresult code = call<api::opcode::cuGraphInstantiateWithParams>(
      own,
      marshal::instantiate_body{.graph = value_of(graph),
                                .exec = made,
                                .flags = how.flags,
                                .stream = value_of(how.stream),
                                .per_thread = how.per_thread},
      reply);
  if (reply) said = {reply->result, reinterpret_cast<CUgraphNode>(reply->bad_node)};
  const auto handle = reinterpret_cast<CUgraphExec>(made);
  if (code == CUDA_SUCCESS) code = learn_needs(own, std::move(*reply), handle);
  if (code != CUDA_SUCCESS) return table.release(made), code;
  return *exec = handle, CUDA_SUCCESS;
}

CUresult instantiate_telling(lane& own, CUgraphExec* exec, CUgraph graph, CUgraphNode* bad, char* log,
                             std::size_t room) {
  verdict said;
  const CUresult code = instantiate(own, exec, graph, {}, said);
  if (bad) *bad = said.bad_node;
  if (log && room) *log = '\0';
  return code;
}

CUresult instantiate_with(lane& own, CUgraphExec* exec, CUgraph graph, CUDA_GRAPH_INSTANTIATE_PARAMS* p,
                          bool per_thread) {
  if (!p) return CUDA_ERROR_INVALID_VALUE;
  verdict said;
  const CUresult code = instantiate(own, exec, graph, {p->flags, p->hUploadStream, per_thread}, said);
  p->result_out = code == CUDA_SUCCESS ? CUDA_GRAPH_INSTANTIATE_SUCCESS
                                       : static_cast<CUgraphInstantiateResult>(said.result);
  p->hErrNode_out = said.bad_node;
  return code;
}

/// The bytes that the graph's copies read, as they are now.
CUresult feed(lane& own, CUgraphExec exec, const std::vector<std::uint64_t>& sources) {
  std::vector<std::byte> bytes;
  const auto send = [&] {
    const CUresult code =
        post<marshal::service::graph_feed>(own, marshal::feed_body{.exec = value_of(exec)}, bytes);
    bytes.clear();
    return code;
  };
  for (const std::uint64_t id : sources) {
    const auto box = own.state().functions.box(id);
    if (!box || box->written) return CUDA_ERROR_UNKNOWN;
    const std::uint64_t row = box->gapless() ? box->size() : box->width;
    for (std::uint64_t at = 0; at < box->size();) {
      const std::uint64_t n =
          std::min({row - at % row, std::uint64_t{piece} - bytes.size(), box->size() - at});
      const std::byte* from = box->place(at, n);
      bytes.insert(bytes.end(), from, from + n);
      at += n;
      if (bytes.size() < piece) continue;
      if (const CUresult code = send(); code != CUDA_SUCCESS) return code;
    }
  }
  return bytes.empty() ? CUDA_SUCCESS : send();
}

CUresult launch(lane& own, CUgraphExec exec, CUstream stream, bool per_thread) {
  exec_info* info = find_object<exec_info>(own, exec);
  if (!stream_ok(own, stream)) return info ? CUDA_ERROR_INVALID_HANDLE : CUDA_ERROR_INVALID_VALUE;
  if (const CUresult code = refuse_captured(own, stream, per_thread); code != CUDA_SUCCESS) return code;
  if (!info) return CUDA_ERROR_INVALID_VALUE;
  const std::lock_guard lock(info->mutex);
  if (!info->sources.empty()) {
    if (const CUresult code = feed(own, exec, info->sources); code != CUDA_SUCCESS) return code;
  }
  if (info->functions || !info->targets.empty()) own.state().connection.server()->expect_callbacks(1);
  request r(typed<api::opcode::cuGraphLaunch>, own,
            marshal::graph_launch_body{
                .exec = value_of(exec), .stream = value_of(stream), .per_thread = per_thread});
  return any_capture_open() || own.state().memory.graph_memory_in_use() ? r.call() : r.post();
}

CUresult upload(lane& own, CUgraphExec exec, CUstream stream, bool per_thread) {
  if (!find_object<exec_info>(own, exec)) return CUDA_ERROR_INVALID_VALUE;
  if (!stream_ok(own, stream)) return CUDA_ERROR_INVALID_HANDLE;
  request r(typed<api::opcode::cuGraphUpload>, own,
            marshal::graph_launch_body{
                .exec = value_of(exec), .stream = value_of(stream), .per_thread = per_thread});
  return any_capture_open() ? r.call() : r.post();
}

CUresult update(lane& own, CUgraphExec exec, CUgraph graph, CUgraphExecUpdateResultInfo& said) {
  exec_info* info = find_object<exec_info>(own, exec);
  said = {CU_GRAPH_EXEC_UPDATE_ERROR, nullptr, nullptr};
  if (!info || !graph_ok(own, graph)) return CUDA_ERROR_INVALID_VALUE;
  std::optional<marshal::update_reply> reply;
  const CUresult code = call<api::opcode::cuGraphExecUpdate_v2>(
      own, marshal::update_body{.exec = value_of(exec), .graph = value_of(graph)}, reply);
  if (reply)
    said = {static_cast<CUgraphExecUpdateResult>(reply->result),
            reinterpret_cast<CUgraphNode>(reply->bad_node), reinterpret_cast<CUgraphNode>(reply->bad_from)};
  if (code != CUDA_SUCCESS) return code;
  const std::lock_guard lock(info->mutex);
  info->sources = std::move(reply->sources);
  info->targets = std::move(reply->targets);
  info->functions = reply->functions;
  return code;
}

CUresult ask_number(lane& own, like<api::opcode::cuGraphExecGetFlags> what, CUgraphExec exec,
                    CUgraphNode node, std::int64_t& out) {
  marshal::number_reply number;
  const CUresult code =
      call(what, own, marshal::instantiate_body{.graph = value_of(node), .exec = value_of(exec)}, number);
  if (code == CUDA_SUCCESS) out = number.value;
  return code;
}

}  // namespace

namespace ends {

CUresult cuGraphInstantiateWithFlags(CUgraphExec* exec, CUgraph graph, unsigned long long flags) {
  lane& own = this_lane();
  verdict said;
  return instantiate(own, exec, graph, {flags, nullptr, false}, said);
}
CUresult cuGraphInstantiate(CUgraphExec* exec, CUgraph graph, CUgraphNode* bad, char* log, std::size_t room) {
  lane& own = this_lane();
  return instantiate_telling(own, exec, graph, bad, log, room);
}
CUresult cuGraphInstantiate_v2(CUgraphExec* exec, CUgraph graph, CUgraphNode* bad, char* log,
                               std::size_t room) {
  lane& own = this_lane();
  return instantiate_telling(own, exec, graph, bad, log, room);
}
CUresult cuGraphInstantiateWithParams(CUgraphExec* exec, CUgraph graph, CUDA_GRAPH_INSTANTIATE_PARAMS* p) {
  lane& own = this_lane();
  return instantiate_with(own, exec, graph, p, false);
}
CUresult cuGraphInstantiateWithParams_ptsz(CUgraphExec* exec, CUgraph graph,
                                           CUDA_GRAPH_INSTANTIATE_PARAMS* p) {
  lane& own = this_lane();
  return instantiate_with(own, exec, graph, p, true);
}

CUresult cuGraphLaunch(CUgraphExec exec, CUstream stream) {
  lane& own = this_lane();
  return launch(own, exec, stream, false);
}
CUresult cuGraphLaunch_ptsz(CUgraphExec exec, CUstream stream) {
  lane& own = this_lane();
  return launch(own, exec, stream, true);
}
CUresult cuGraphUpload(CUgraphExec exec, CUstream stream) {
  lane& own = this_lane();
  return upload(own, exec, stream, false);
}
CUresult cuGraphUpload_ptsz(CUgraphExec exec, CUstream stream) {
  lane& own = this_lane();
  return upload(own, exec, stream, true);
}

CUresult cuGraphExecDestroy(CUgraphExec exec) {
  lane& own = this_lane();
  if (!find_object<exec_info>(own, exec)) return CUDA_ERROR_INVALID_VALUE;
  request r(typed<api::opcode::cuGraphExecDestroy>, own, marshal::handle_body{.handle = value_of(exec)});
  const CUresult code = any_capture_open() ? r.call() : r.post();
  if (code == CUDA_SUCCESS) own.state().handles[api::handle_kind::graph_exec].release(value_of(exec));
  return code;
}

CUresult cuGraphExecUpdate_v2(CUgraphExec exec, CUgraph graph, CUgraphExecUpdateResultInfo* info) {
  lane& own = this_lane();
  CUgraphExecUpdateResultInfo unwanted{};
  return update(own, exec, graph, info ? *info : unwanted);
}
CUresult cuGraphExecUpdate(CUgraphExec exec, CUgraph graph, CUgraphNode* bad,
                           CUgraphExecUpdateResult* result) {
  lane& own = this_lane();
  if (!result) return CUDA_ERROR_INVALID_VALUE;
  CUgraphExecUpdateResultInfo info{};
  const CUresult code = update(own, exec, graph, info);
  *result = info.result;
  if (bad) *bad = info.errorNode;
  return code;
}

CUresult cuGraphExecGetFlags(CUgraphExec exec, cuuint64_t* flags) {
  lane& own = this_lane();
  if (!flags || !find_object<exec_info>(own, exec)) return CUDA_ERROR_INVALID_VALUE;
  std::int64_t number = 0;
  const CUresult code = ask_number(own, typed<api::opcode::cuGraphExecGetFlags>, exec, nullptr, number);
  if (code == CUDA_SUCCESS) *flags = static_cast<cuuint64_t>(number);
  return code;
}

CUresult cuGraphNodeSetEnabled(CUgraphExec exec, CUgraphNode node, unsigned on) {
  lane& own = this_lane();
  if (!node_ok(node) || !find_object<exec_info>(own, exec)) return CUDA_ERROR_INVALID_VALUE;
  return call<api::opcode::cuGraphNodeSetEnabled>(
      own, marshal::instantiate_body{.graph = value_of(node), .exec = value_of(exec), .flags = on});
}
CUresult cuGraphNodeGetEnabled(CUgraphExec exec, CUgraphNode node, unsigned* on) {
  lane& own = this_lane();
  if (!on || !node_ok(node) || !find_object<exec_info>(own, exec)) return CUDA_ERROR_INVALID_VALUE;
  std::int64_t number = 0;
  const CUresult code = ask_number(own, typed<api::opcode::cuGraphNodeGetEnabled>, exec, node, number);
  if (code == CUDA_SUCCESS) *on = static_cast<unsigned>(number);
  return code;
}

}  // namespace ends
}  // namespace outboard::frontend::cuda
