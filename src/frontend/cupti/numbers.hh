// Contexts, streams, graphs and their nodes as numbers, which is how profilers show them: from 1 on, as they
// are first seen. Any thread.
#pragma once

#include "api/cuda/cupti_headers.hh"

#include <cstdint>
#include <map>
#include <mutex>
#include <set>
#include <utility>

namespace outboard::frontend::cupti {

class numbers {
 public:
  /// 0: no context.
  std::uint32_t of_context(std::uint64_t handle) {
    if (handle == 0) return 0;
    const std::lock_guard lock(mutex_);
    return contexts_.try_emplace(handle, static_cast<std::uint32_t>(contexts_.size() + 1)).first->second;
  }

  /// The number of a graph or of an executable graph.
  std::uint32_t of_graph(const void* handle) {
    const std::lock_guard lock(mutex_);
    return graphs_.try_emplace(handle, static_cast<std::uint32_t>(graphs_.size() + 1)).first->second;
  }

  std::uint32_t of_event(const void* handle) {
    const std::lock_guard lock(mutex_);
    return events_.try_emplace(handle, static_cast<std::uint32_t>(events_.size() + 1)).first->second;
  }

  std::uint32_t of_module(const void* handle) {
    const std::lock_guard lock(mutex_);
    return modules_.try_emplace(handle, static_cast<std::uint32_t>(modules_.size() + 1)).first->second;
  }

  /// A stream's capture has ended: its graph has another handle from now on, and is the same.
  void rename_graph(const void* before, const void* now) {
    const std::uint32_t number = of_graph(before);
    const std::lock_guard lock(mutex_);
    graphs_[now] = number;
  }

  /// The number of a graph's node. The driver never gives out nodes of executable graphs; such a node has its
  /// number as a handle (as_node()).
  std::uint64_t of_node(CUgraphNode handle) {
    const auto value = reinterpret_cast<std::uint64_t>(handle);
    return value < first_handle ? value : of_clone(0, value);
  }
  /// The number of the node that an executable graph has made from this one, by the worker's name of it.
  std::uint64_t of_clone(std::uint32_t exec, std::uint64_t node) {
    const std::lock_guard lock(mutex_);
    return nodes_.try_emplace({exec, node}, nodes_.size() + 1).first->second;
  }
  static CUgraphNode as_node(std::uint64_t number) { return reinterpret_cast<CUgraphNode>(number); }

  /// True once: the context has not been reported yet.
  bool is_new_context(std::uint64_t handle) {
    const std::lock_guard lock(mutex_);
    return told_.insert(handle).second;
  }

  /// `stream`: the program's handle; the null handle and the legacy one are the same.
  std::uint32_t of_stream(std::uint32_t context, const void* stream, bool per_thread) {
    auto handle = reinterpret_cast<std::uint64_t>(stream);
    if (handle == 0) handle = per_thread ? 2 : 1;
    const std::lock_guard lock(mutex_);
    const auto next = static_cast<std::uint32_t>(streams_.size() + 1);
    return streams_.try_emplace({context, handle}, next).first->second;
  }

 private:
  static constexpr std::uint64_t first_handle = std::uint64_t{1}
                                                << 52;  // handles have their kind from there on

  std::mutex mutex_;
  std::map<std::uint64_t, std::uint32_t> contexts_;
  std::map<const void*, std::uint32_t> graphs_, modules_, events_;
  std::map<std::pair<std::uint32_t, std::uint64_t>, std::uint64_t> nodes_;  // by executable graph; 0: of none
  std::set<std::uint64_t> told_;
  std::map<std::pair<std::uint32_t, std::uint64_t>, std::uint32_t> streams_;
};

}  // namespace outboard::frontend::cupti
