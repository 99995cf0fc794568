#include "frontend/cupti/functions.hh"

#include "api/cuda/cupti_headers.hh"

#include <string_view>
#include <vector>

#include "api/cuda/functions.hh"
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

/// CUgraphNodeType + 1; 0: its parameters say.
std::uint8_t type_of(api::added_node added) {
  using enum api::added_node;
  const auto one_more = [](CUgraphNodeType type) { return static_cast<std::uint8_t>(type + 1); };
  switch (added) {
    case none:
    case any:
      return 0;
    case kernel:
      return one_more(CU_GRAPH_NODE_TYPE_KERNEL);
    case memcpy:
      return one_more(CU_GRAPH_NODE_TYPE_MEMCPY);
    case memset:
      return one_more(CU_GRAPH_NODE_TYPE_MEMSET);
    case host:
      return one_more(CU_GRAPH_NODE_TYPE_HOST);
    case graph:
      return one_more(CU_GRAPH_NODE_TYPE_GRAPH);
    case empty:
      return one_more(CU_GRAPH_NODE_TYPE_EMPTY);
    case event_wait:
      return one_more(CU_GRAPH_NODE_TYPE_WAIT_EVENT);
    case event_record:
      return one_more(CU_GRAPH_NODE_TYPE_EVENT_RECORD);
    case semaphores_signal:
      return one_more(CU_GRAPH_NODE_TYPE_EXT_SEMAS_SIGNAL);
    case semaphores_wait:
      return one_more(CU_GRAPH_NODE_TYPE_EXT_SEMAS_WAIT);
    case mem_alloc:
      return one_more(CU_GRAPH_NODE_TYPE_MEM_ALLOC);
    case mem_free:
      return one_more(CU_GRAPH_NODE_TYPE_MEM_FREE);
    case batch_mem_op:
      return one_more(CU_GRAPH_NODE_TYPE_BATCH_MEM_OP);
  }
  return 0;
}

/// How many arguments of a call that adds a node or links some stand for edges' data: the nodes that it
/// names are counted by the argument behind them.
std::uint8_t edges_of(const api::description& about) {
  const std::size_t nodes = about.graph == graph_change::adds_node ? 2 : 1;
  const bool named = about.graph == graph_change::adds_node || about.graph == graph_change::links ||
                     about.graph == graph_change::unlinks;
  return named ? static_cast<std::uint8_t>(about.parameters[nodes].count_index - 3) : 0;
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
    t.leaves_work = f.about.work;
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
    t.graph = f.about.graph;
    t.node_type = type_of(f.about.adds);
    t.edges = edges_of(f.about);
    t.pool = f.about.pool;
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
