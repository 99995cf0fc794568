// Chapter graph, executable graphs: made, changed, launched. A launch sends along what its copies read of the
// program's memory now; what they write arrives before any call that learns of its completion.
#include "frontend/cuda/chapters/capture.hh"
#include "frontend/cuda/copying/host_order.hh"
#include "frontend/cuda/ends.hh"
#include "frontend/cuda/gate.hh"
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
  if (!exec || !graph_ok(graph)) return CUDA_ERROR_INVALID_VALUE;
  if (!stream_ok(how.stream)) return CUDA_ERROR_INVALID_HANDLE;
  handle_table& table = process::instance().objects().handles(api::handle_kind::graph_exec);
  auto info = std::make_unique<exec_info>();
  info->context = own.context_handle();
  const std::uint64_t made = table.reserve(std::move(info));
  if (!made) return CUDA_ERROR_OUT_OF_MEMORY;
  request_of<api::opcode::cuGraphInstantiateWithParams> r(
      own, marshal::instantiate_body{value_of(graph), made, how.flags, value_of(how.stream), how.per_thread});
  CUresult code = r.call();
  auto reply = r.whole_reply();
  if (reply) said = {reply->result, reinterpret_cast<CUgraphNode>(reply->bad_node)};
  const auto handle = reinterpret_cast<CUgraphExec>(made);
  if (code == CUDA_SUCCESS)
    code = reply ? learn_needs(std::move(*reply), find_object<exec_info>(handle)) : r.malformed();
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
    request_of<marshal::service::graph_feed> r(own, marshal::feed_body{value_of(exec)});
    const CUresult code = r.post(bytes);
    bytes.clear();
    return code;
  };
  for (const std::uint64_t id : sources) {
    const auto box = process::instance().functions().box(id);
    if (!box) return CUDA_ERROR_UNKNOWN;
    if (const CUresult code = settle(own, box->base, box->extent().size()); code != CUDA_SUCCESS) return code;
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
  exec_info* info = find_object<exec_info>(exec);
  if (!stream_ok(stream)) return info ? CUDA_ERROR_INVALID_HANDLE : CUDA_ERROR_INVALID_VALUE;
  if (const CUresult code = refuse_captured(own, stream, per_thread); code != CUDA_SUCCESS) return code;
  if (!info) return CUDA_ERROR_INVALID_VALUE;
  const std::lock_guard lock(info->mutex);
  if (!info->sources.empty()) {
    if (const CUresult code = feed(own, exec, info->sources); code != CUDA_SUCCESS) return code;
  }
  if (info->functions || !info->targets.empty()) process::instance().server()->expect_callbacks(1);
  request_of<api::opcode::cuGraphLaunch> r(
      own, marshal::graph_launch_body{value_of(exec), value_of(stream), per_thread});
  r.in_stream(stream, per_thread);
  if (info->functions) r.awaited();
  return any_capture_open() || process::instance().memory().graph_memory_in_use() ? r.call() : r.post();
}

CUresult upload(lane& own, CUgraphExec exec, CUstream stream, bool per_thread) {
  if (!find_object<exec_info>(exec)) return CUDA_ERROR_INVALID_VALUE;
  if (!stream_ok(stream)) return CUDA_ERROR_INVALID_HANDLE;
  request_of<api::opcode::cuGraphUpload> r(
      own, marshal::graph_launch_body{value_of(exec), value_of(stream), per_thread});
  return any_capture_open() ? r.call() : r.post();
}

CUresult update(lane& own, CUgraphExec exec, CUgraph graph, CUgraphExecUpdateResultInfo& said) {
  exec_info* info = find_object<exec_info>(exec);
  said = {CU_GRAPH_EXEC_UPDATE_ERROR, nullptr, nullptr};
  if (!info || !graph_ok(graph)) return CUDA_ERROR_INVALID_VALUE;
  request_of<api::opcode::cuGraphExecUpdate_v2> r(own, marshal::update_body{value_of(exec), value_of(graph)});
  const CUresult code = r.call();
  {
    const std::lock_guard lock(info->mutex);
    info->taken.clear();
  }
  auto reply = r.whole_reply();
  if (!reply) return code == CUDA_SUCCESS ? r.malformed() : code;
  said = {static_cast<CUgraphExecUpdateResult>(reply->result), reinterpret_cast<CUgraphNode>(reply->bad_node),
          reinterpret_cast<CUgraphNode>(reply->bad_from)};
  if (code != CUDA_SUCCESS) return code;
  const std::lock_guard lock(info->mutex);
  info->sources = std::move(reply->sources);
  info->targets = std::move(reply->targets);
  info->functions = reply->functions;
  return code;
}

CUresult ask_number(lane& own, opcode_for<marshal::instantiate_body, marshal::number_reply> code,
                    CUgraphExec exec, CUgraphNode node, marshal::number_reply& out) {
  typed_request r(code, own, marshal::instantiate_body{value_of(node), value_of(exec), 0, 0, false});
  return r.call(out);
}

}  // namespace

namespace ends {

#define OUTBOARD_GATE(symbol) \
  lane& own = this_lane();    \
  if (const CUresult refused = gate<api::opcode::symbol>(own); refused != CUDA_SUCCESS) return refused

CUresult cuGraphInstantiateWithFlags(CUgraphExec* exec, CUgraph graph, unsigned long long flags) {
  OUTBOARD_GATE(cuGraphInstantiateWithFlags);
  verdict said;
  return instantiate(own, exec, graph, {flags, nullptr, false}, said);
}
CUresult cuGraphInstantiate(CUgraphExec* exec, CUgraph graph, CUgraphNode* bad, char* log, std::size_t room) {
  OUTBOARD_GATE(cuGraphInstantiate);
  return instantiate_telling(own, exec, graph, bad, log, room);
}
CUresult cuGraphInstantiate_v2(CUgraphExec* exec, CUgraph graph, CUgraphNode* bad, char* log,
                               std::size_t room) {
  OUTBOARD_GATE(cuGraphInstantiate_v2);
  return instantiate_telling(own, exec, graph, bad, log, room);
}
CUresult cuGraphInstantiateWithParams(CUgraphExec* exec, CUgraph graph, CUDA_GRAPH_INSTANTIATE_PARAMS* p) {
  OUTBOARD_GATE(cuGraphInstantiateWithParams);
  return instantiate_with(own, exec, graph, p, false);
}
CUresult cuGraphInstantiateWithParams_ptsz(CUgraphExec* exec, CUgraph graph,
                                           CUDA_GRAPH_INSTANTIATE_PARAMS* p) {
  OUTBOARD_GATE(cuGraphInstantiateWithParams_ptsz);
  return instantiate_with(own, exec, graph, p, true);
}

CUresult cuGraphLaunch(CUgraphExec exec, CUstream stream) {
  OUTBOARD_GATE(cuGraphLaunch);
  return launch(own, exec, stream, false);
}
CUresult cuGraphLaunch_ptsz(CUgraphExec exec, CUstream stream) {
  OUTBOARD_GATE(cuGraphLaunch_ptsz);
  return launch(own, exec, stream, true);
}
CUresult cuGraphUpload(CUgraphExec exec, CUstream stream) {
  OUTBOARD_GATE(cuGraphUpload);
  return upload(own, exec, stream, false);
}
CUresult cuGraphUpload_ptsz(CUgraphExec exec, CUstream stream) {
  OUTBOARD_GATE(cuGraphUpload_ptsz);
  return upload(own, exec, stream, true);
}

CUresult cuGraphExecDestroy(CUgraphExec exec) {
  OUTBOARD_GATE(cuGraphExecDestroy);
  if (!find_object<exec_info>(exec)) return CUDA_ERROR_INVALID_VALUE;
  request_of<api::opcode::cuGraphExecDestroy> r(own, marshal::handle_body{value_of(exec)});
  const CUresult code = any_capture_open() ? r.call() : r.post();
  if (code == CUDA_SUCCESS)
    process::instance().objects().handles(api::handle_kind::graph_exec).release(value_of(exec));
  return code;
}

CUresult cuGraphExecUpdate_v2(CUgraphExec exec, CUgraph graph, CUgraphExecUpdateResultInfo* info) {
  OUTBOARD_GATE(cuGraphExecUpdate_v2);
  CUgraphExecUpdateResultInfo unwanted{};
  return update(own, exec, graph, info ? *info : unwanted);
}
CUresult cuGraphExecUpdate(CUgraphExec exec, CUgraph graph, CUgraphNode* bad,
                           CUgraphExecUpdateResult* result) {
  OUTBOARD_GATE(cuGraphExecUpdate);
  if (!result) return CUDA_ERROR_INVALID_VALUE;
  CUgraphExecUpdateResultInfo info{};
  const CUresult code = update(own, exec, graph, info);
  *result = info.result;
  if (bad) *bad = info.errorNode;
  return code;
}

CUresult cuGraphExecGetFlags(CUgraphExec exec, cuuint64_t* flags) {
  OUTBOARD_GATE(cuGraphExecGetFlags);
  if (!flags || !find_object<exec_info>(exec)) return CUDA_ERROR_INVALID_VALUE;
  marshal::number_reply found;
  const CUresult code = ask_number(own, api::opcode::cuGraphExecGetFlags, exec, nullptr, found);
  if (code == CUDA_SUCCESS) *flags = static_cast<cuuint64_t>(found.value);
  return code;
}

CUresult cuGraphNodeSetEnabled(CUgraphExec exec, CUgraphNode node, unsigned on) {
  OUTBOARD_GATE(cuGraphNodeSetEnabled);
  if (!node_ok(node) || !find_object<exec_info>(exec)) return CUDA_ERROR_INVALID_VALUE;
  request_of<api::opcode::cuGraphNodeSetEnabled> r(
      own, marshal::instantiate_body{value_of(node), value_of(exec), on, 0, false});
  return r.call();
}
CUresult cuGraphNodeGetEnabled(CUgraphExec exec, CUgraphNode node, unsigned* on) {
  OUTBOARD_GATE(cuGraphNodeGetEnabled);
  if (!on || !node_ok(node) || !find_object<exec_info>(exec)) return CUDA_ERROR_INVALID_VALUE;
  marshal::number_reply found;
  const CUresult code = ask_number(own, api::opcode::cuGraphNodeGetEnabled, exec, node, found);
  if (code == CUDA_SUCCESS) *on = static_cast<unsigned>(found.value);
  return code;
}

}  // namespace ends
}  // namespace outboard::frontend::cuda
