#include "frontend/cupti/functions.hh"

#include "api/cuda/cupti_headers.hh"

#include <vector>

#include "api/cuda/functions.hh"
#include "api/cupti/names.hh"

namespace outboard::frontend::cupti {
namespace {

using api::object_change;

std::uint8_t synchronizes(object_change does) {
  switch (does) {
    case object_change::awaits_event:
      return CUPTI_ACTIVITY_SYNCHRONIZATION_TYPE_EVENT_SYNCHRONIZE;
    case object_change::stream_waits:
      return CUPTI_ACTIVITY_SYNCHRONIZATION_TYPE_STREAM_WAIT_EVENT;
    case object_change::awaits_stream:
      return CUPTI_ACTIVITY_SYNCHRONIZATION_TYPE_STREAM_SYNCHRONIZE;
    case object_change::awaits_context:
      return CUPTI_ACTIVITY_SYNCHRONIZATION_TYPE_CONTEXT_SYNCHRONIZE;
    default:
      return 0;
  }
}

/// What a call that succeeds has made.
std::uint8_t begins(object_change does) {
  if (does == object_change::starts_cuda) return CUPTI_CBID_RESOURCE_CU_INIT_FINISHED;
  return does == object_change::makes_stream ? CUPTI_CBID_RESOURCE_STREAM_CREATED : 0;
}

/// What a call is about to destroy.
std::uint8_t ends(object_change does) {
  if (does == object_change::ends_context) return CUPTI_CBID_RESOURCE_CONTEXT_DESTROY_STARTING;
  return does == object_change::ends_stream ? CUPTI_CBID_RESOURCE_STREAM_DESTROY_STARTING : 0;
}

/// Which argument of a copy is memory of the program's, from 1 on.
std::uint8_t host_argument(api::left_work left) {
  if (left == api::left_work::copies_in) return 2;
  return left == api::left_work::copies_out ? 1 : 0;
}

/// Which argument is the event that is waited for, from 1 on.
std::uint8_t waited_event(object_change does) {
  if (does == object_change::awaits_event) return 1;
  return does == object_change::stream_waits ? 2 : 0;
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

/// A copy, a fill or a change of memory that takes its place in a stream.
bool is_async(const function_traits& t, const api::description& about) {
  const bool may_be =
      api::copies(about.leaves) || about.leaves == api::left_work::fills || t.allocates || t.releases;
  return may_be && api::detail::index_of(about, "hStream") != api::no_parameter;
}

function_traits traits_of_line(const api::function_info& f) {
  const api::description& about = f.about;
  function_traits t;
  // Of this one CUPTI itself tells nothing (observed).
  if (f.name != "cuGetExportTable") t.callback = api::cupti::callback_of(api::cupti::domain::driver, f.name);
  t.leaves_work = about.work;
  t.launches_graph = about.work && about.leaves == api::left_work::graphs;
  t.one_copy = about.work && api::copies(about.leaves) && !about.batch;
  t.host_argument = host_argument(about.leaves);
  t.allocates = about.object == object_change::allocates;
  t.releases = about.object == object_change::releases;
  t.async = is_async(t, about);
  t.begins = begins(about.object);
  t.ends = ends(about.object);
  t.synchronizes = synchronizes(about.object);
  t.graph = about.graph;
  t.node_type = type_of(about.adds);
  t.edges = edges_of(about);
  t.pool = about.pool;
  t.records_event = about.object == object_change::records_event;
  t.waited_event = waited_event(about.object);
  t.loads_module = about.object == object_change::loads_module;
  t.unloads_module = about.object == object_change::unloads_module;
  return t;
}

std::vector<function_traits> make_table() {
  std::vector<function_traits> table;
  for (const api::function_info& f : api::functions()) {
    const auto code = static_cast<std::size_t>(f.code);
    if (code >= table.size()) table.resize(code + 1);
    table[code] = traits_of_line(f);
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
