// Entries of the chapter graph about executable graphs: made, changed, launched.
#include <algorithm>
#include <cstring>

#include "device/cpu/graph/graph_nodes.hh"

namespace outboard::device::cpu {
namespace {

bool does_work(const std::shared_ptr<graph_node>& node) {
  return node->type == CU_GRAPH_NODE_TYPE_KERNEL || node->type == CU_GRAPH_NODE_TYPE_MEMCPY ||
         node->type == CU_GRAPH_NODE_TYPE_MEMSET || node->type == CU_GRAPH_NODE_TYPE_GRAPH;
}

CUresult instantiate(CUgraphExec* out, CUgraph handle, unsigned long long flags) {
  constexpr unsigned long long known = CUDA_GRAPH_INSTANTIATE_FLAG_AUTO_FREE_ON_LAUNCH |
                                       CUDA_GRAPH_INSTANTIATE_FLAG_UPLOAD |
                                       CUDA_GRAPH_INSTANTIATE_FLAG_USE_NODE_PRIORITY;
  if (out == nullptr) return CUDA_ERROR_INVALID_VALUE;
  return with_graphs([&]() -> CUresult {
    const graph_ptr graph = find_graph(handle);
    if (graph == nullptr) return CUDA_ERROR_INVALID_VALUE;
    if ((flags & CUDA_GRAPH_INSTANTIATE_FLAG_DEVICE_LAUNCH) != 0) {
      // Graphs that no board could launch from a kernel are wrong before they are too much to ask.
      const bool fit = std::ranges::any_of(graph->nodes, does_work);
      return fit ? CUDA_ERROR_NOT_SUPPORTED : CUDA_ERROR_INVALID_VALUE;
    }
    if ((flags & ~known) != 0) return CUDA_ERROR_INVALID_VALUE;
    auto made = std::make_shared<graph_exec>();
    made->flags = flags;
    made->work = make_plan(*graph);
    if (made->work == nullptr) return CUDA_ERROR_INVALID_VALUE;  // the edges make a circle
    if (const CUresult r = here().graph_blocks.claim(*made->work, made); r != CUDA_SUCCESS) return r;
    made->handle = here().graph_execs.insert(made);
    return *out = reinterpret_cast<CUgraphExec>(made->handle), CUDA_SUCCESS;
  });
}

CUresult instantiate_telling(CUgraphExec* out, CUgraph graph, CUgraphNode* bad, char* log, std::size_t size) {
  if (bad != nullptr) *bad = nullptr;
  if (log != nullptr && size > 0) *log = '\0';
  return instantiate(out, graph, 0);
}

template <bool PerThread>
CUresult upload(CUgraphExec handle, CUstream stream);

template <bool PerThread>
CUresult instantiate_with(CUgraphExec* out, CUgraph graph, CUDA_GRAPH_INSTANTIATE_PARAMS* p) {
  if (p == nullptr) return CUDA_ERROR_INVALID_VALUE;
  CUresult r = instantiate(out, graph, p->flags);
  if (r == CUDA_SUCCESS && (p->flags & CUDA_GRAPH_INSTANTIATE_FLAG_UPLOAD) != 0) {
    r = upload<PerThread>(*out, p->hUploadStream);
  }
  p->hErrNode_out = nullptr;
  p->result_out = r == CUDA_SUCCESS               ? CUDA_GRAPH_INSTANTIATE_SUCCESS
                  : r == CUDA_ERROR_INVALID_VALUE ? CUDA_GRAPH_INSTANTIATE_INVALID_STRUCTURE
                                                  : CUDA_GRAPH_INSTANTIATE_ERROR;
  return r;
}

CUresult get_flags(CUgraphExec handle, cuuint64_t* out) {
  if (out == nullptr) return CUDA_ERROR_INVALID_VALUE;
  return with_graphs([&]() -> CUresult {
    const auto exec = find_exec(handle);
    if (exec == nullptr) return CUDA_ERROR_INVALID_VALUE;
    return *out = exec->flags, CUDA_SUCCESS;
  });
}

/// The work of launches under way is left alone.
CUresult destroy(CUgraphExec handle) {
  return with_graphs([&]() -> CUresult {
    return here().graph_execs.remove(number(handle)) ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
  });
}

template <class Body>
CUresult on_stream(CUgraphExec handle, CUstream stream, bool per_thread, Body&& body) {
  return with_context([&](context&, const context_ptr& c) -> CUresult {
    stream_ptr s;
    if (const CUresult r = stream_of(c, stream, per_thread, s); r != CUDA_SUCCESS) return r;
    const std::lock_guard lock(here().graphs_mutex);
    const auto exec = find_exec(handle);
    return exec != nullptr ? body(*exec, s) : CUDA_ERROR_INVALID_VALUE;
  });
}

/// There is nowhere to bring a graph: its order in the stream is all there is to see.
template <bool PerThread>
CUresult upload(CUgraphExec handle, CUstream stream) {
  return on_stream(handle, stream, PerThread, [](graph_exec&, const stream_ptr& s) {
    return s->capturing() ? capture_forbids(*s) : CUDA_SUCCESS;
  });
}

template <bool PerThread>
CUresult launch(CUgraphExec handle, CUstream stream) {
  return on_stream(handle, stream, PerThread, [](graph_exec& exec, const stream_ptr& s) {
    return s->capturing() ? capture_forbids(*s) : launch_plan(exec, s);
  });
}

// --- changes: a launch under way keeps the plan that it began with

/// A copy of the plan with the node's step for `change` to work on. Errors: 1 no such node in it.
template <class Change>
CUresult change_step(CUgraphExec exec_handle, CUgraphNode node, Change&& change) {
  return with_graphs([&]() -> CUresult {
    const auto exec = find_exec(exec_handle);
    if (exec == nullptr) return CUDA_ERROR_INVALID_VALUE;
    auto next = std::make_shared<plan>(*exec->work);
    for (plan_step& step : next->steps) {
      if (step.node != number(node)) continue;
      if (const CUresult r = change(step); r != CUDA_SUCCESS) return r;
      exec->work = std::move(next);
      return CUDA_SUCCESS;
    }
    return CUDA_ERROR_INVALID_VALUE;
  });
}

template <class Make>
CUresult change_work(CUgraphExec exec, CUgraphNode node, CUgraphNodeType type, Make&& make) {
  return change_step(exec, node, [&](plan_step& step) -> CUresult {
    if (step.type != type) return CUDA_ERROR_INVALID_VALUE;
    node_work work;
    if (const CUresult r = make(work); r != CUDA_SUCCESS) return r;
    if (auto* kernel = std::get_if<kernel_work>(&work)) {
      const auto& before = std::get<kernel_work>(step.work);
      if (kernel->owner != before.owner) return CUDA_ERROR_INVALID_VALUE;
      kernel->attributes = before.attributes;
      kernel->how.cooperative = before.how.cooperative;
    }
    if (const auto* child = std::get_if<child_work>(&work)) {
      auto body = make_plan(*child->graph);
      if (body == nullptr) return CUDA_ERROR_INVALID_VALUE;
      step.bodies = {std::move(body)};
    }
    return step.work = std::move(work), CUDA_SUCCESS;
  });
}

CUresult set_kernel_v2(CUgraphExec exec, CUgraphNode node, const CUDA_KERNEL_NODE_PARAMS_v2* p) {
  if (p == nullptr) return CUDA_ERROR_INVALID_VALUE;
  return change_work(exec, node, CU_GRAPH_NODE_TYPE_KERNEL, [&](node_work& w) { return make_kernel(*p, w); });
}
CUresult set_kernel(CUgraphExec exec, CUgraphNode node, const CUDA_KERNEL_NODE_PARAMS_v1* p) {
  if (p == nullptr) return CUDA_ERROR_INVALID_VALUE;
  kernel_parameters wide{};
  std::memcpy(&wide, p, sizeof *p);
  return set_kernel_v2(exec, node, &wide);
}
CUresult set_copy(CUgraphExec exec, CUgraphNode node, const CUDA_MEMCPY3D* p, CUcontext context) {
  if (p == nullptr) return CUDA_ERROR_INVALID_VALUE;
  return change_work(exec, node, CU_GRAPH_NODE_TYPE_MEMCPY,
                     [&](node_work& w) { return make_copy(*p, context, w); });
}
CUresult set_fill(CUgraphExec exec, CUgraphNode node, const CUDA_MEMSET_NODE_PARAMS_v1* p,
                  CUcontext context) {
  if (p == nullptr) return CUDA_ERROR_INVALID_VALUE;
  const CUDA_MEMSET_NODE_PARAMS_v2 wide{p->dst,   p->pitch,  p->value, p->elementSize,
                                        p->width, p->height, context};
  return change_work(exec, node, CU_GRAPH_NODE_TYPE_MEMSET, [&](node_work& w) { return make_fill(wide, w); });
}
CUresult set_host(CUgraphExec exec, CUgraphNode node, const CUDA_HOST_NODE_PARAMS_v1* p) {
  if (p == nullptr) return CUDA_ERROR_INVALID_VALUE;
  return change_work(exec, node, CU_GRAPH_NODE_TYPE_HOST,
                     [&](node_work& w) { return make_host(p->fn, p->userData, w); });
}
CUresult set_child(CUgraphExec exec, CUgraphNode node, CUgraph child) {
  return change_work(exec, node, CU_GRAPH_NODE_TYPE_GRAPH,
                     [&](node_work& w) { return make_child(child, w); });
}
template <CUgraphNodeType Type>
CUresult set_event(CUgraphExec exec, CUgraphNode node, CUevent event) {
  return change_work(exec, node, Type, [&](node_work& w) { return make_event(event, w); });
}
CUresult set_operations(CUgraphExec exec, CUgraphNode node, const CUDA_BATCH_MEM_OP_NODE_PARAMS_v1* p) {
  if (p == nullptr) return CUDA_ERROR_INVALID_VALUE;
  return change_work(exec, node, CU_GRAPH_NODE_TYPE_BATCH_MEM_OP, [&](node_work& w) {
    return make_memory_operations(p->ctx, p->paramArray, p->count, p->flags, w);
  });
}
CUresult set_any(CUgraphExec exec, CUgraphNode node, CUgraphNodeParams* p) {
  if (p == nullptr || p->type == CU_GRAPH_NODE_TYPE_MEM_ALLOC || p->type == CU_GRAPH_NODE_TYPE_MEM_FREE)
    return CUDA_ERROR_INVALID_VALUE;
  return change_work(exec, node, p->type, [&](node_work& w) { return make_work(*p, w); });
}

bool can_be_disabled(CUgraphNodeType type) {
  return type == CU_GRAPH_NODE_TYPE_KERNEL || type == CU_GRAPH_NODE_TYPE_MEMCPY ||
         type == CU_GRAPH_NODE_TYPE_MEMSET;
}
CUresult set_enabled(CUgraphExec exec, CUgraphNode node, unsigned on) {
  return change_step(exec, node, [&](plan_step& step) {
    if (!can_be_disabled(step.type)) return CUDA_ERROR_INVALID_VALUE;
    return step.enabled = on != 0, CUDA_SUCCESS;
  });
}
CUresult get_enabled(CUgraphExec handle, CUgraphNode node, unsigned* out) {
  if (out == nullptr) return CUDA_ERROR_INVALID_VALUE;
  return with_graphs([&]() -> CUresult {
    const auto exec = find_exec(handle);
    if (exec == nullptr) return CUDA_ERROR_INVALID_VALUE;
    for (const plan_step& step : exec->work->steps) {
      if (step.node != number(node)) continue;
      if (!can_be_disabled(step.type)) return CUDA_ERROR_INVALID_VALUE;
      return *out = step.enabled ? 1 : 0, CUDA_SUCCESS;
    }
    return CUDA_ERROR_INVALID_VALUE;
  });
}

/// Step by step the same types, as the order of both says; parameters and edges may differ only so far.
CUresult take_over(const plan& before, plan& after, CUgraphExecUpdateResultInfo& info) {
  if (before.steps.size() != after.steps.size()) {
    info.result = CU_GRAPH_EXEC_UPDATE_ERROR_TOPOLOGY_CHANGED;
    return CUDA_ERROR_GRAPH_EXEC_UPDATE_FAILURE;
  }
  for (std::size_t i = 0; i < before.steps.size(); ++i) {
    const plan_step& old = before.steps[i];
    plan_step& fresh = after.steps[i];
    info.errorNode = reinterpret_cast<CUgraphNode>(fresh.node);
    if (old.type != fresh.type) {
      info.result = CU_GRAPH_EXEC_UPDATE_ERROR_NODE_TYPE_CHANGED;
      return CUDA_ERROR_GRAPH_EXEC_UPDATE_FAILURE;
    }
    const auto* kernel = std::get_if<kernel_work>(&fresh.work);
    if (kernel != nullptr && kernel->owner != std::get<kernel_work>(old.work).owner) {
      info.result = CU_GRAPH_EXEC_UPDATE_ERROR_UNSUPPORTED_FUNCTION_CHANGE;
      return CUDA_ERROR_GRAPH_EXEC_UPDATE_FAILURE;
    }
    // Memory of a graph has its addresses for good.
    if (old.type == CU_GRAPH_NODE_TYPE_MEM_ALLOC || old.type == CU_GRAPH_NODE_TYPE_MEM_FREE) {
      info.result = CU_GRAPH_EXEC_UPDATE_ERROR_NOT_SUPPORTED;
      return CUDA_ERROR_GRAPH_EXEC_UPDATE_FAILURE;
    }
    if (old.bodies.size() != fresh.bodies.size()) {
      info.result = CU_GRAPH_EXEC_UPDATE_ERROR_TOPOLOGY_CHANGED;
      return CUDA_ERROR_GRAPH_EXEC_UPDATE_FAILURE;
    }
    for (std::size_t n = 0; n < old.bodies.size(); ++n) {
      auto body = std::make_shared<plan>(*fresh.bodies[n]);
      if (const CUresult r = take_over(*old.bodies[n], *body, info); r != CUDA_SUCCESS) return r;
      fresh.bodies[n] = std::move(body);
    }
    fresh.node = old.node;  // the program goes on naming the nodes of the graph that it was made from
    fresh.enabled = old.enabled;
  }
  info = {};
  return CUDA_SUCCESS;
}

CUresult update_v2(CUgraphExec exec_handle, CUgraph graph_handle, CUgraphExecUpdateResultInfo* out) {
  if (out == nullptr) return CUDA_ERROR_INVALID_VALUE;
  return with_graphs([&]() -> CUresult {
    *out = {};
    out->result = CU_GRAPH_EXEC_UPDATE_ERROR;
    const auto exec = find_exec(exec_handle);
    const graph_ptr graph = find_graph(graph_handle);
    if (exec == nullptr || graph == nullptr) return CUDA_ERROR_INVALID_VALUE;
    auto next = make_plan(*graph);
    if (next == nullptr) return CUDA_ERROR_INVALID_VALUE;
    if (const CUresult r = take_over(*exec->work, *next, *out); r != CUDA_SUCCESS) return r;
    return exec->work = std::move(next), CUDA_SUCCESS;
  });
}
CUresult update(CUgraphExec exec, CUgraph graph, CUgraphNode* bad, CUgraphExecUpdateResult* result) {
  if (result == nullptr) return CUDA_ERROR_INVALID_VALUE;
  CUgraphExecUpdateResultInfo info{};
  const CUresult r = update_v2(exec, graph, &info);
  *result = info.result;
  if (bad != nullptr) *bad = info.errorNode;
  return r;
}

}  // namespace

void fill_graph_exec_entries(api::driver_table& t) {
  t.cuGraphInstantiate = t.cuGraphInstantiate_v2 = instantiate_telling;
  t.cuGraphInstantiateWithFlags = instantiate;
  t.cuGraphInstantiateWithParams = instantiate_with<false>;
  t.cuGraphInstantiateWithParams_ptsz = instantiate_with<true>;
  t.cuGraphExecGetFlags = get_flags;
  t.cuGraphExecDestroy = destroy;
  t.cuGraphUpload = upload<false>;
  t.cuGraphUpload_ptsz = upload<true>;
  t.cuGraphLaunch = launch<false>;
  t.cuGraphLaunch_ptsz = launch<true>;
  t.cuGraphExecKernelNodeSetParams = set_kernel;
  t.cuGraphExecKernelNodeSetParams_v2 = set_kernel_v2;
  t.cuGraphExecMemcpyNodeSetParams = set_copy;
  t.cuGraphExecMemsetNodeSetParams = set_fill;
  t.cuGraphExecHostNodeSetParams = set_host;
  t.cuGraphExecChildGraphNodeSetParams = set_child;
  t.cuGraphExecEventRecordNodeSetEvent = set_event<CU_GRAPH_NODE_TYPE_EVENT_RECORD>;
  t.cuGraphExecEventWaitNodeSetEvent = set_event<CU_GRAPH_NODE_TYPE_WAIT_EVENT>;
  t.cuGraphExecBatchMemOpNodeSetParams = set_operations;
  t.cuGraphExecNodeSetParams = set_any;
  t.cuGraphNodeSetEnabled = set_enabled;
  t.cuGraphNodeGetEnabled = get_enabled;
  t.cuGraphExecUpdate = update;
  t.cuGraphExecUpdate_v2 = update_v2;
}

}  // namespace outboard::device::cpu
