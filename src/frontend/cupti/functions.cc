#include "frontend/cupti/functions.hh"

#include "api/cuda/cupti_headers.hh"

#include <algorithm>
#include <array>
#include <string_view>
#include <vector>

#include "api/cuda/functions.hh"
#include "api/cuda/work_calls.hh"
#include "api/cupti/names.hh"

namespace outboard::frontend::cupti {
namespace {

/// Of this CUPTI itself tells nothing (observed).
constexpr std::string_view untold = "cuGetExportTable";

std::uint8_t synchronizes(std::string_view name) {
  if (name.starts_with("cuEventSynchronize")) return CUPTI_ACTIVITY_SYNCHRONIZATION_TYPE_EVENT_SYNCHRONIZE;
  if (name.starts_with("cuStreamWaitEvent")) return CUPTI_ACTIVITY_SYNCHRONIZATION_TYPE_STREAM_WAIT_EVENT;
  if (name.starts_with("cuStreamSynchronize")) return CUPTI_ACTIVITY_SYNCHRONIZATION_TYPE_STREAM_SYNCHRONIZE;
  if (name.starts_with("cuCtxSynchronize")) return CUPTI_ACTIVITY_SYNCHRONIZATION_TYPE_CONTEXT_SYNCHRONIZE;
  return 0;
}

/// What a call that succeeds has made.
std::uint8_t begins(std::string_view name) {
  if (name == "cuInit") return CUPTI_CBID_RESOURCE_CU_INIT_FINISHED;
  if (name.starts_with("cuStreamCreate")) return CUPTI_CBID_RESOURCE_STREAM_CREATED;
  return 0;
}

/// What a call is about to destroy.
std::uint8_t ends(std::string_view name) {
  if (name.starts_with("cuCtxDestroy")) return CUPTI_CBID_RESOURCE_CONTEXT_DESTROY_STARTING;
  if (name.starts_with("cuStreamDestroy")) return CUPTI_CBID_RESOURCE_STREAM_DESTROY_STARTING;
  return 0;
}

pool_change change_of_pools(std::string_view name) {
  if (name == "cuMemPoolCreate") return pool_change::creates;
  if (name == "cuMemPoolImportFromShareableHandle") return pool_change::imports;
  if (name == "cuMemPoolDestroy") return pool_change::destroys;
  if (name == "cuMemPoolTrimTo") return pool_change::trims;
  return pool_change::none;
}

graph_change change_of_graphs(std::string_view name) {
  struct beginning {
    std::string_view with;
    graph_change what;
  };
  // Of several that fit the first.
  constexpr std::array known{beginning{"cuGraphCreate", graph_change::creates},
                             beginning{"cuGraphClone", graph_change::clones},
                             beginning{"cuGraphDestroyNode", graph_change::destroys_node},
                             beginning{"cuGraphDestroy", graph_change::destroys},
                             beginning{"cuGraphAddDependencies", graph_change::links},
                             beginning{"cuGraphRemoveDependencies", graph_change::unlinks},
                             beginning{"cuGraphAdd", graph_change::adds_node},
                             beginning{"cuGraphInstantiate", graph_change::instantiates},
                             beginning{"cuGraphExecDestroy", graph_change::destroys_exec},
                             beginning{"cuStreamBeginCapture", graph_change::begins_capture},
                             beginning{"cuStreamEndCapture", graph_change::ends_capture},
                             beginning{"cuEventRecord", graph_change::may_be_captured},
                             beginning{"cuLaunchHostFunc", graph_change::may_be_captured},
                             beginning{"cuStreamBatchMemOp", graph_change::may_be_captured},
                             beginning{"cuStreamWriteValue", graph_change::may_be_captured},
                             beginning{"cuStreamWaitValue", graph_change::may_be_captured},
                             beginning{"cuMemAllocAsync", graph_change::may_be_captured},
                             beginning{"cuMemAllocFromPoolAsync", graph_change::may_be_captured},
                             beginning{"cuMemFreeAsync", graph_change::may_be_captured}};
  for (const beginning& one : known) {
    if (name.starts_with(one.with)) return one.what;
  }
  return api::leaves_work(name) ? graph_change::may_be_captured : graph_change::none;
}

/// CUgraphNodeType + 1.
std::uint8_t added_by(std::string_view name) {
  struct kind {
    std::string_view with;
    CUgraphNodeType type;
  };
  constexpr std::array known{kind{"cuGraphAddKernelNode", CU_GRAPH_NODE_TYPE_KERNEL},
                             kind{"cuGraphAddMemcpyNode", CU_GRAPH_NODE_TYPE_MEMCPY},
                             kind{"cuGraphAddMemsetNode", CU_GRAPH_NODE_TYPE_MEMSET},
                             kind{"cuGraphAddHostNode", CU_GRAPH_NODE_TYPE_HOST},
                             kind{"cuGraphAddChildGraphNode", CU_GRAPH_NODE_TYPE_GRAPH},
                             kind{"cuGraphAddEmptyNode", CU_GRAPH_NODE_TYPE_EMPTY},
                             kind{"cuGraphAddEventRecordNode", CU_GRAPH_NODE_TYPE_EVENT_RECORD},
                             kind{"cuGraphAddEventWaitNode", CU_GRAPH_NODE_TYPE_WAIT_EVENT},
                             kind{"cuGraphAddMemAllocNode", CU_GRAPH_NODE_TYPE_MEM_ALLOC},
                             kind{"cuGraphAddMemFreeNode", CU_GRAPH_NODE_TYPE_MEM_FREE},
                             kind{"cuGraphAddBatchMemOpNode", CU_GRAPH_NODE_TYPE_BATCH_MEM_OP}};
  for (const kind& one : known) {
    if (name.starts_with(one.with)) return static_cast<std::uint8_t>(one.type + 1);
  }
  return 0;
}

// Addresses of CUDA's first version had 32 bits: `narrow` are its functions, which no program of 64 bits
// calls.
std::vector<function_traits> make_table() {
  std::vector<function_traits> table;
  for (const api::function_info& f : api::functions()) {
    const auto code = static_cast<std::size_t>(f.code);
    if (code >= table.size()) table.resize(code + 1);
    const auto starts = [&](std::string_view with) { return f.name.starts_with(with); };
    function_traits& t = table[code];
    if (f.name != untold) t.callback = api::cupti::callback_of(api::cupti::domain::driver, f.name);
    t.leaves_work = api::leaves_work(f.name);
    t.launches_graph = starts("cuGraphLaunch");
    t.one_copy = starts("cuMemcpy") && !starts("cuMemcpyBatch") && !starts("cuMemcpy3DBatch");
    if (starts("cuMemcpyHtoD")) t.host_argument = 2;
    if (starts("cuMemcpyDtoH")) t.host_argument = 1;
    t.async = f.name.find("Async") != f.name.npos;
    const bool narrow = f.name == "cuMemAlloc" || f.name == "cuMemAllocPitch" || f.name == "cuMemFree";
    t.allocates = !narrow && (starts("cuMemAlloc") || starts("cuMemHostAlloc"));
    t.releases = !narrow && starts("cuMemFree");
    t.begins = begins(f.name);
    t.ends = ends(f.name);
    t.synchronizes = synchronizes(f.name);
    t.graph = change_of_graphs(f.name);
    t.node_type = added_by(f.name);
    const bool newer = f.name == "cuGraphAddNode_v2" || f.name == "cuGraphAddDependencies_v2" ||
                       f.name == "cuGraphRemoveDependencies_v2";
    t.edges = newer ? 1 : 0;
    t.pool = change_of_pools(f.name);
    t.records_event = starts("cuEventRecord");
    if (starts("cuEventSynchronize")) t.waited_event = 1;
    if (starts("cuStreamWaitEvent")) t.waited_event = 2;
    t.loads_module = starts("cuModuleLoad");
    t.unloads_module = starts("cuModuleUnload");
  }
  return table;
}

}  // namespace

const function_traits& traits_of(std::uint32_t function) {
  static const std::vector<function_traits>* const table = new std::vector(make_table());
  static const function_traits none;
  return function < table->size() ? (*table)[function] : none;
}

}  // namespace outboard::frontend::cupti
