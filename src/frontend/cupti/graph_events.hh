// Reports to the program's profiler what the program does to its graphs: graphs, their nodes and edges,
// executable graphs. The server is asked for the nodes of a capture and of a graph that is made executable;
// that costs a few round trips for each, only while the profiler wants it. On the thread that calls.
#pragma once

#include "api/cuda/cupti_headers.hh"

#include <cstdint>
#include <map>
#include <mutex>
#include <span>
#include <vector>

#include "frontend/call_watch.hh"
#include "frontend/cupti/callbacks.hh"
#include "frontend/cupti/functions.hh"
#include "frontend/cupti/numbers.hh"
#include "frontend/lane.hh"

namespace outboard::frontend::cupti {

class graph_events {
 public:
  graph_events(const callbacks& told, cupti::numbers& numbers) : callbacks_(told), numbers_(numbers) {}

  /// While the profiler wants to know of graphs. Before the call, and after it.
  void entered(const lane& own, const tool_call& call, const function_traits& f);
  void left(const lane& own, const tool_call& call, const function_traits& f);

 private:
  struct added_node {
    CUgraph graph = nullptr;
    CUgraphNode node = nullptr;
    CUgraphNodeType type = CU_GRAPH_NODE_TYPE_EMPTY;
    std::vector<CUgraphNode> before;
  };
  void tell(const lane& own, std::uint32_t event, const CUpti_GraphData& about) const;
  void tell_node(const lane& own, const added_node& added);
  void tell_links(const lane& own, const tool_call& call, const function_traits& f,
                  std::uint32_t event) const;
  void tell_clones(const lane& own, const tool_call& call);
  void tell_instantiated(const lane& own, const tool_call& call);
  void tell_end(const lane& own, CUgraph graph);
  void tell_end_of_node(const lane& own, CUgraphNode node);
  void begin_capture(const lane& own, const tool_call& call, const function_traits& f);
  void end_capture(const CUgraph* graph);
  std::vector<CUgraphNode> untold(CUgraph graph, std::span<const CUgraphNode> nodes);
  void look_at_capture(const lane& own, const tool_call& call);

  const callbacks& callbacks_;
  cupti::numbers& numbers_;
  std::mutex mutex_;  // guards what follows
  /// That the profiler knows of.
  std::map<CUgraph, std::map<CUgraphNode, CUgraphNodeType>> nodes_;
};

}  // namespace outboard::frontend::cupti
