// Who wants to be told of every API call: the shim looks at one word, which is zero as a rule. Any thread.
#pragma once

#include <atomic>

namespace outboard::frontend {

enum class call_watcher : unsigned { trace = 1, profile = 2 };

inline std::atomic<unsigned> call_watchers{0};

inline bool calls_watched() { return call_watchers.load(std::memory_order_relaxed) != 0; }
inline bool calls_watched_by(call_watcher who) {
  return (call_watchers.load(std::memory_order_relaxed) & static_cast<unsigned>(who)) != 0;
}
inline void watch_calls(call_watcher who, bool on) {
  const auto bit = static_cast<unsigned>(who);
  on ? call_watchers.fetch_or(bit, std::memory_order_relaxed)
     : call_watchers.fetch_and(~bit, std::memory_order_relaxed);
}

}  // namespace outboard::frontend
