// Contexts, streams and graphs as numbers, which is how profilers show them: from 1 on, as they are first
// seen. Any thread.
#pragma once

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

  /// Of a graph or an executable one.
  std::uint32_t of_graph(const void* handle) {
    const std::lock_guard lock(mutex_);
    return graphs_.try_emplace(handle, static_cast<std::uint32_t>(graphs_.size() + 1)).first->second;
  }

  /// True once: it has not been told of.
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
  std::mutex mutex_;
  std::map<std::uint64_t, std::uint32_t> contexts_;
  std::map<const void*, std::uint32_t> graphs_;
  std::set<std::uint64_t> told_;
  std::map<std::pair<std::uint32_t, std::uint64_t>, std::uint32_t> streams_;
};

}  // namespace outboard::frontend::cupti
