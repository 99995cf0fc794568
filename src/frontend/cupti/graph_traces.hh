// Launches of graphs as a whole, put together from the device's records of their nodes. One thread at a time.
#pragma once

#include <algorithm>
#include <cstdint>
#include <map>
#include <vector>

namespace outboard::frontend::cupti {

/// Begin and end: of the first and the last node, on our clock.
struct graph_trace {
  std::uint32_t call = 0, graph = 0;
  std::uint32_t context = 0, stream = 0;
  std::uint32_t first_device = 0, last_device = 0;
  std::int64_t begin = 0, end = 0;
};

class graph_traces {
 public:
  /// A node of a launch was done.
  void add(const graph_trace& node) {
    const auto [at, fresh] = open_.try_emplace(node.call, node);
    graph_trace& whole = at->second;
    if (fresh) return;
    if (node.begin < whole.begin) whole.begin = node.begin, whole.first_device = node.first_device;
    if (node.end > whole.end) whole.end = node.end, whole.last_device = node.last_device;
  }

  /// Work of another call was done in this stream: what was launched there before it is over.
  void take_before(std::uint32_t call, std::uint32_t context, std::uint32_t stream,
                   std::vector<graph_trace>& out) {
    std::erase_if(open_, [&](const auto& one) {
      const graph_trace& t = one.second;
      const bool over = t.call < call && t.context == context && t.stream == stream;
      if (over) out.push_back(t);
      return over;
    });
  }
  void take_all(std::vector<graph_trace>& out) {
    for (const auto& one : open_) out.push_back(one.second);
    open_.clear();
  }

 private:
  std::map<std::uint32_t, graph_trace> open_;  // by call
};

}  // namespace outboard::frontend::cupti
