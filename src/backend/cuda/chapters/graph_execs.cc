// Handlers of the chapter graph about executable graphs, user objects and conditional handles.
#include <algorithm>
#include <cstring>

#include "backend/cuda/ends.hh"
#include "backend/cuda/graph/graph_handles.hh"
#include "backend/cuda/relaxed_capture.hh"
#include "device/node_names.hh"

namespace outboard::backend {
bool last_is_over(const api::driver_table& d, const exec_needs& needs) {
  if (!needs.last) return true;
  const relaxed_capture relaxed(d);
  return call_driver(d.cuEventQuery, needs.last) == CUDA_SUCCESS;
}

void drop_old(call& c, exec_changes& changed) {
  for (const boxed_bytes& b : changed.old_copies) c.session.captured_copies().release(b);
  for (host_calls::function* f : changed.old_functions) host_calls::destroyed(f);
  changed.old_copies.clear(), changed.old_functions.clear();
}

namespace {

std::uint64_t bytes_of(const std::vector<boxed_bytes>& blocks) {
  std::uint64_t bytes = 0;
  for (const boxed_bytes& b : blocks) bytes += b.size;
  return bytes;
}

/// What launches of one executable graph may keep for later; beyond it they wait for those before.
constexpr std::uint64_t most_kept = 64u << 20;

/// Bytes for blocks that an earlier launch still reads.
struct later_fill {
  std::vector<std::byte> bytes;
  std::vector<boxed_bytes> sources;
  std::shared_ptr<std::atomic<std::uint64_t>> kept;

  void run() const {
    std::size_t at = 0;
    for (const boxed_bytes& b : sources) {
      std::memcpy(b.data, bytes.data() + at, b.size);
      at += b.size;
    }
  }
  static void CUDA_CB run_and_end(void* data) {
    const std::unique_ptr<later_fill> own(static_cast<later_fill*>(data));
    own->run();
    own->kept->fetch_sub(own->bytes.size());
  }
};

/// Into what the graph's copies read: at once, or in the stream that waits for the launch before.
CUresult fill_sources(const api::driver_table& d, exec_needs& needs, CUstream stream,
                      decltype(api::driver_table::cuLaunchHostFunc) enqueue) {
  later_fill fill{std::exchange(needs.fed, {}), needs.sources, needs.kept};
  if (fill.bytes.size() != bytes_of(needs.sources)) return CUDA_ERROR_INVALID_VALUE;
  bool now = last_is_over(d, needs);
  // Pageable memory the driver reads in the launch itself.
  const bool locked = std::ranges::all_of(needs.sources, &boxed_bytes::page_locked);
  if (!now && (!locked || needs.kept->load() + fill.bytes.size() > most_kept)) {
    const CUresult code = call_driver(d.cuEventSynchronize, needs.last);
    if (code != CUDA_SUCCESS) return code;
    now = true;
  }
  if (now) return fill.run(), CUDA_SUCCESS;
  needs.kept->fetch_add(fill.bytes.size());
  auto own = std::make_unique<later_fill>(std::move(fill));
  const CUresult code = enqueue(stream, later_fill::run_and_end, own.get());
  if (code == CUDA_SUCCESS) return own.release(), code;
  needs.kept->fetch_sub(own->bytes.size());
  return code;
}

bool nothing(const exec_changes& changed) {
  return changed.copies.empty() && changed.functions.empty() && changed.told.empty() &&
         changed.old_copies.empty() && changed.old_functions.empty();
}

/// What it has for itself is of launches before only.
void retire_all(exec_changes& changed) {
  for (const auto& [node, blocks] : changed.copies) changed.retire(blocks);
  for (const auto& [node, f] : changed.told) changed.old_functions.push_back(f);
  for (const auto& [node, f] : changed.functions) changed.old_functions.push_back(f);
  changed.copies.clear(), changed.told.clear(), changed.functions.clear();
}

/// What an executable graph had for itself; its launches may still be under way.
void clean_up(call& c, exec_needs& needs) {
  if (!nothing(needs.changed) && needs.last) {
    c.give_up_turn();
    c.driver().cuEventSynchronize(needs.last);
  }
  retire_all(needs.changed);
  drop_old(c, needs.changed);
  if (needs.last) call_driver(c.driver().cuEventDestroy_v2, needs.last);
}

struct launch_order {
  CUgraphExec exec = nullptr;
  CUstream stream = nullptr;
  bool per_thread = false;
};

/// A launch with bytes for its copies before, and behind it a host function of ours that sends bytes from
/// them.
CUresult launch_with(call& c, const launch_order& o, exec_needs& needs) {
  const api::driver_table& d = c.driver();
  const auto function = o.per_thread ? d.cuLaunchHostFunc_ptsz : d.cuLaunchHostFunc;
  const auto wait = o.per_thread ? d.cuStreamWaitEvent_ptsz : d.cuStreamWaitEvent;
  const auto record = o.per_thread ? d.cuEventRecord_ptsz : d.cuEventRecord;
  const auto start = o.per_thread ? d.cuGraphLaunch_ptsz : d.cuGraphLaunch;
  if (!function || !start) return CUDA_ERROR_NOT_SUPPORTED;
  CUresult code = CUDA_SUCCESS;
  if (needs.last) code = wait(o.stream, needs.last, 0);
  if (code == CUDA_SUCCESS && !needs.sources.empty()) code = fill_sources(d, needs, o.stream, function);
  if (code == CUDA_SUCCESS && !needs.last)
    code = call_driver(d.cuEventCreate, &needs.last, CU_EVENT_DISABLE_TIMING);
  if (code != CUDA_SUCCESS) return code;
  code = start(o.exec, o.stream);
  if (code == CUDA_SUCCESS && needs.has_end()) {
    void* end = c.session.host().make_end(needs.targets, c.session.captured_copies().use(needs.targets));
    code = function(o.stream, host_calls::run_end, end);
    if (code != CUDA_SUCCESS) host_calls::drop_end(end);
  }
  // Also behind a launch that failed: its bytes may still be on their way into the blocks.
  record(needs.last, o.stream);
  return code;
}

CUresult take_launch(call& c, const marshal::graph_launch_body& body, launch_order& o) {
  CUresult code = c.refused;
  o.per_thread = body.per_thread;
  if (code == CUDA_SUCCESS) code = find(c, body.exec, o.exec);
  if (code == CUDA_SUCCESS) code = c.objects().resolve_stream(body.stream, o.stream);
  return code;
}

/// For the device's recorder, while this lives.
class names_of_nodes final : public device::node_names {
 public:
  explicit names_of_nodes(call& c) : objects_(c.objects()) { device::nodes_under_way = this; }
  ~names_of_nodes() { device::nodes_under_way = nullptr; }
  names_of_nodes(const names_of_nodes&) = delete;
  names_of_nodes& operator=(const names_of_nodes&) = delete;

  std::uint64_t name_of(CUgraphNode node) const override {
    return objects_.minted_name_of(api::handle_kind::graph_node, node);
  }

 private:
  const object_tables& objects_;
};

CUresult instantiate(call& c, const marshal::instantiate_body& body, CUgraphExec& exec, exec_needs& needs,
                     marshal::instantiate_reply& said) {
  const names_of_nodes names(c);
  const api::driver_table& d = c.driver();
  CUgraph graph = needs.graph;
  const taught_graph taught(d, c.session.captured_copies(), needs);
  if (!taught.taken()) return CUDA_ERROR_NOT_SUPPORTED;
  const auto with = body.per_thread ? d.cuGraphInstantiateWithParams_ptsz : d.cuGraphInstantiateWithParams;
  if (!with) return call_driver(d.cuGraphInstantiateWithFlags, &exec, graph, body.flags);
  CUDA_GRAPH_INSTANTIATE_PARAMS p{};
  p.flags = body.flags;
  if (const CUresult code = c.objects().resolve_stream(body.stream, p.hUploadStream); code != CUDA_SUCCESS)
    return code;
  const CUresult code = with(&exec, graph, &p);
  said.result = static_cast<std::int32_t>(p.result_out);
  said.bad_node = name_node(c, p.hErrNode_out, graph);
  return code;
}

CUresult update(call& c, CUgraphExec exec, exec_needs& next, CUgraphExecUpdateResultInfo& info) {
  const api::driver_table& d = c.driver();
  const taught_graph taught(d, c.session.captured_copies(), next);
  if (!taught.taken()) return CUDA_ERROR_NOT_SUPPORTED;
  return d.cuGraphExecUpdate_v2
             ? d.cuGraphExecUpdate_v2(exec, next.graph, &info)
             : call_driver(d.cuGraphExecUpdate, exec, next.graph, &info.errorNode, &info.result);
}

/// What an updated graph's launches need. The driver may still run a launch from before.
void take_over(exec_needs& needs, exec_needs&& next) {
  retire_all(needs.changed);
  needs.fed.clear();
  needs.graph = next.graph, needs.functions = next.functions;
  needs.sources = std::move(next.sources), needs.targets = std::move(next.targets);
  needs.silent = std::move(next.silent);
  needs.changed.told = std::move(next.changed.told);
}

}  // namespace

namespace ends {

outcome cuGraphInstantiateWithParams(call& c, const marshal::instantiate_body& body) {
  CUgraph graph = nullptr;
  CUgraphExec exec = nullptr;
  marshal::instantiate_reply said;
  CUresult code = c.refused;
  if (code == CUDA_SUCCESS) code = find(c, body.graph, graph);
  auto needs = std::make_shared<exec_needs>();
  needs->graph = graph, needs->graph_id = body.graph, needs->change = c.objects().last_change(graph);
  if (code == CUDA_SUCCESS) code = instantiate(c, body, exec, *needs, said);
  if (code != CUDA_SUCCESS) clean_up(c, *needs);
  marshal::instantiate_reply reply = needs_reply(*needs);
  reply.result = said.result;
  reply.bad_node = said.bad_node;
  c.keep_outputs_on_error = true;
  marshal::put_body(c.reply, reply);
  if (code != CUDA_SUCCESS) return outcome::answer(code);
  return c.objects().create(body.exec, exec, c.as_record(), std::move(needs)) ? outcome::answer(code)
                                                                              : outcome::malformed();
}

outcome graph_feed(call& c, const marshal::feed_body& body, std::span<const std::byte> bytes) {
  exec_needs* needs = needs_of(c, body.exec);
  if (!needs) return outcome::answer(CUDA_ERROR_INVALID_VALUE);
  if (bytes.size() > bytes_of(needs->sources) - std::min(bytes_of(needs->sources), needs->fed.size()))
    return outcome::malformed();
  needs->fed.insert(needs->fed.end(), bytes.begin(), bytes.end());
  return outcome::answer(CUDA_SUCCESS);
}

outcome cuGraphLaunch(call& c, const marshal::graph_launch_body& body) {
  launch_order o;
  CUresult code = take_launch(c, body, o);
  if (code == CUDA_SUCCESS) code = c.session.limits().admit_graph();
  if (code != CUDA_SUCCESS) return outcome::answer(code);
  c.session.unseen().launched_anywhere();
  exec_needs& needs = *needs_of(c, body.exec);
  if (needs.empty()) {
    c.works_on(o.stream, o.per_thread);
    code = call_driver(o.per_thread ? c.driver().cuGraphLaunch_ptsz : c.driver().cuGraphLaunch, o.exec,
                       o.stream);
    c.session.limits().graph_launched();
    return outcome::answer(code);
  }
  CUgraph captured = nullptr;
  code = graph_under_capture(c, o.stream, o.per_thread, captured);
  // No graph takes in the launch of another: the driver says so, and the capture is lost.
  if (code == CUDA_SUCCESS && captured) {
    code = call_driver(o.per_thread ? c.driver().cuGraphLaunch_ptsz : c.driver().cuGraphLaunch, o.exec,
                       o.stream);
  } else if (code == CUDA_SUCCESS) {
    code = launch_with(c, o, needs);
  }
  // The client waits for the end of a launch that has one.
  if (code != CUDA_SUCCESS && needs.has_end()) c.session.host().tell({marshal::errand::keep, 0, 0, true, {}});
  return outcome::answer(code);
}

outcome cuGraphUpload(call& c, const marshal::graph_launch_body& body) {
  launch_order o;
  const CUresult code = take_launch(c, body, o);
  if (code != CUDA_SUCCESS) return outcome::answer(code);
  return outcome::answer(
      call_driver(o.per_thread ? c.driver().cuGraphUpload_ptsz : c.driver().cuGraphUpload, o.exec, o.stream));
}

outcome cuGraphExecDestroy(call& c, const marshal::handle_body& body) {
  CUgraphExec exec = nullptr;
  CUresult code = find(c, body.handle, exec);
  if (code == CUDA_SUCCESS) code = call_driver(c.driver().cuGraphExecDestroy, exec);
  if (code != CUDA_SUCCESS) return outcome::answer(code);
  // The table's share goes first: what follows may wait.
  const server_object* found = c.objects().at(body.handle);
  const auto needs = found ? std::static_pointer_cast<exec_needs>(found->extra) : nullptr;
  c.objects().erase(body.handle);
  if (needs) clean_up(c, *needs);
  return outcome::answer(code);
}

outcome cuGraphExecUpdate_v2(call& c, const marshal::update_body& body) {
  CUgraphExec exec = nullptr;
  CUgraph graph = nullptr;
  CUgraphExecUpdateResultInfo info{CU_GRAPH_EXEC_UPDATE_ERROR, nullptr, nullptr};
  CUresult code = c.refused;
  if (code == CUDA_SUCCESS) code = find(c, body.exec, exec);
  if (code == CUDA_SUCCESS) code = find(c, body.graph, graph);
  exec_needs* needs = needs_of(c, body.exec);
  if (code == CUDA_SUCCESS && !needs) code = CUDA_ERROR_INVALID_VALUE;
  exec_needs next;
  next.graph = graph;
  // What is switched off stays so; in another graph the driver alone knows which node that is.
  if (code == CUDA_SUCCESS && !needs->silent.empty() && body.graph != needs->graph_id)
    code = CUDA_ERROR_NOT_SUPPORTED;
  if (code == CUDA_SUCCESS) next.changed.off = needs->changed.off;
  if (code == CUDA_SUCCESS) {
    c.objects().note_change(exec, c.header.ticket);
    code = update(c, exec, next, info);
  }
  marshal::update_reply reply;
  reply.result = static_cast<std::int32_t>(info.result);
  reply.bad_node = name_node(c, info.errorNode, graph);
  reply.bad_from = name_node(c, info.errorFromNode, graph);
  if (code == CUDA_SUCCESS) {
    // Nodes are still named by the graph that it was instantiated from.
    if (needs->graph_id != body.graph) needs->graph_id = 0;
    needs->change = c.objects().last_change(graph);
    take_over(*needs, std::move(next));
    if (last_is_over(c.driver(), *needs)) drop_old(c, needs->changed);
    const marshal::instantiate_reply now = needs_reply(*needs);
    reply.sources = now.sources, reply.targets = now.targets, reply.functions = now.functions;
  } else {
    clean_up(c, next);
  }
  c.keep_outputs_on_error = true;
  marshal::put_body(c.reply, reply);
  return outcome::answer(code);
}

outcome cuGraphExecGetFlags(call& c, const marshal::instantiate_body& body) {
  CUgraphExec exec = nullptr;
  cuuint64_t flags = 0;
  CUresult code = find(c, body.exec, exec);
  if (code == CUDA_SUCCESS) code = call_driver(c.driver().cuGraphExecGetFlags, exec, &flags);
  marshal::put_body(c.reply, marshal::number_reply{static_cast<std::int64_t>(flags)});
  return outcome::answer(code);
}

outcome cuGraphNodeSetEnabled(call& c, const marshal::instantiate_body& body) {
  CUgraphExec exec = nullptr;
  CUgraphNode node = nullptr;
  CUresult code = find(c, body.exec, exec);
  if (code == CUDA_SUCCESS) code = find(c, body.graph, node);
  if (code != CUDA_SUCCESS) return outcome::answer(code);
  exec_needs& needs = *needs_of(c, body.exec);
  const exec_place place{c.driver(), c.session.captured_copies(), exec};
  const bool on = body.flags != 0, was = !needs.changed.off.contains(node);
  const bool learn = is_for_client(place, needs, node);
  if (learn && !can_be_learned(c, needs)) return outcome::answer(CUDA_ERROR_NOT_SUPPORTED);
  const auto set = [&](unsigned to) { return call_driver(c.driver().cuGraphNodeSetEnabled, exec, node, to); };
  code = set(on);
  if (code != CUDA_SUCCESS) return outcome::answer(code);
  c.objects().note_change(exec, c.header.ticket);
  // Also of one that is none of the client's now: it may become one while it is off.
  switch_copy(needs, node, on);
  if (learn && !learn_change(place, needs)) {
    (void)set(was);
    switch_copy(needs, node, was);
    (void)learn_change(place, needs);
    code = CUDA_ERROR_NOT_SUPPORTED;
  }
  if (last_is_over(c.driver(), needs)) drop_old(c, needs.changed);
  return outcome::answer(code);
}

outcome cuGraphNodeGetEnabled(call& c, const marshal::instantiate_body& body) {
  CUgraphExec exec = nullptr;
  CUgraphNode node = nullptr;
  unsigned on = 0;
  CUresult code = find(c, body.exec, exec);
  if (code == CUDA_SUCCESS) code = find(c, body.graph, node);
  if (code == CUDA_SUCCESS) code = call_driver(c.driver().cuGraphNodeGetEnabled, exec, node, &on);
  marshal::put_body(c.reply, marshal::number_reply{on});
  return outcome::answer(code);
}

// User objects: the driver's own, with a destructor that runs the client's.
outcome cuUserObjectCreate(call& c, const marshal::user_object_body& body) {
  auto* function = c.session.host().make(body.id, true);
  CUuserObject object = nullptr;
  const CUresult code = call_driver(c.driver().cuUserObjectCreate, &object, function,
                                    host_calls::run_destructor, body.count, body.flags);
  if (code != CUDA_SUCCESS) {
    delete function;
    c.session.host().tell({marshal::errand::forget, body.id, 0, true, {}});
    return outcome::answer(code);
  }
  return c.objects().create(body.object, object, c.as_record()) ? outcome::answer(code)
                                                                : outcome::malformed();
}

namespace {

template <class Use>
outcome with_user_object(call& c, const marshal::user_object_body& body, Use&& use) {
  CUuserObject object = nullptr;
  CUgraph graph = nullptr;
  CUresult code = find(c, body.object, object);
  if (code == CUDA_SUCCESS && body.graph) code = find(c, body.graph, graph);
  return outcome::answer(code == CUDA_SUCCESS ? use(object, graph) : code);
}

}  // namespace

outcome cuUserObjectRetain(call& c, const marshal::user_object_body& body) {
  return with_user_object(c, body, [&](CUuserObject object, CUgraph) {
    return call_driver(c.driver().cuUserObjectRetain, object, body.count);
  });
}
outcome cuUserObjectRelease(call& c, const marshal::user_object_body& body) {
  return with_user_object(c, body, [&](CUuserObject object, CUgraph) {
    return call_driver(c.driver().cuUserObjectRelease, object, body.count);
  });
}
outcome cuGraphRetainUserObject(call& c, const marshal::user_object_body& body) {
  return with_user_object(c, body, [&](CUuserObject object, CUgraph graph) {
    return call_driver(c.driver().cuGraphRetainUserObject, graph, object, body.count, body.flags);
  });
}
outcome cuGraphReleaseUserObject(call& c, const marshal::user_object_body& body) {
  return with_user_object(c, body, [&](CUuserObject object, CUgraph graph) {
    return call_driver(c.driver().cuGraphReleaseUserObject, graph, object, body.count);
  });
}

outcome cuGraphConditionalHandleCreate(call& c, const marshal::user_object_body& body) {
  CUgraph graph = nullptr;
  CUcontext context = nullptr;
  CUgraphConditionalHandle handle = 0;
  CUresult code = c.refused;
  if (code == CUDA_SUCCESS) code = find(c, body.graph, graph);
  if (code == CUDA_SUCCESS && body.object) code = c.objects().resolve(body.object, context);
  if (code == CUDA_SUCCESS)
    code = call_driver(c.driver().cuGraphConditionalHandleCreate, &handle, graph, context, body.count,
                       body.flags);
  marshal::put_body(c.reply, marshal::number_reply{static_cast<std::int64_t>(handle)});
  return outcome::answer(code);
}

}  // namespace ends
}  // namespace outboard::backend
