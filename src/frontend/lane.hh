// A lane: one client thread's ordered flow of requests, and what the driver keeps for an OS thread: the stack
// of current contexts. Thread-local; made at the thread's first call. The server is informed when the thread
// ends.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <utility>
#include <vector>

#include "frontend/context.hh"
#include "frontend/work_flow.hh"

namespace outboard::frontend {

struct profiled_lane;

/// How an API call was answered, for the trace and the round-trip budget; the largest during the call counts.
enum class answered : std::uint8_t { locally, posted, waited };

/// What a profiler in the program has said on this thread, and where the runtime's call under way began.
struct tool_of_lane {
  std::vector<std::pair<std::uint32_t, std::uint64_t>> external;  ///< numbers pushed, with their kinds
  std::uint32_t runtime_call = 0;                                 ///< its number; see runtime_call_of()
  std::uint32_t runtime_watch = 0;                                ///< tool_watch at that time
  std::uint64_t noted_context = 0;  ///< that a record was made of last, in this round of them
  std::uint32_t context_round = 0;
  const void* runtime_frame = nullptr;
  std::int64_t runtime_begin = 0;
};

/// What a copy that waits for a default stream has brought: the context, the kind of stream, and
/// mirrors::results_mark at that time.
struct results_seen {
  std::uint64_t context = 0, mark = 0;
  bool per_thread = false;
  bool operator==(const results_seen&) const = default;
};

struct lane {
  std::uint32_t id = 0;
  std::vector<context_state*> contexts;   ///< back() is current; may hold nullptr
  std::vector<std::byte> request, reply;  ///< reused by every call of this thread
  std::vector<std::byte> gathered;        ///< rows of a copy that lie apart in the program's memory
  answered how = answered::locally;
  std::int32_t capture_mode =
      0;                     ///< CUstreamCaptureMode, exchanged by the program; the driver starts with global
  bool in_callback = false;  ///< runs a host function of the program: CUDA calls are not permitted
  std::uint64_t managed_work = 0;  ///< of the request under way that may touch managed memory
  results_seen results;
  bool results_come = false;       ///< of the request under way (mirrors::results_mark)
  std::uint64_t mirrors_work = 0;  ///< context of the one that may touch memory of both sides
  std::optional<work_flow>
      live_work;             ///< of the request under way whose work may look at memory of both sides
  bool awaits_word = false;  ///< of live_work: a stream waits for a word then
  int depth = 0;             ///< API calls inside API calls (callbacks) are traced once
  std::uint32_t call =
      0;  ///< while calls are watched (call_watch.hh): the number of the one under way; 0: none
  tool_of_lane tool;
  profiled_lane* profiled = nullptr;  ///< its calls, while a profile is made (profile_calls.hh)

  context_state* current() const { return contexts.empty() ? nullptr : contexts.back(); }
  /// Where requests run.
  std::uint64_t running_context() const {
    const context_state* now = current();
    return now && now->active.load(std::memory_order_acquire) ? now->handle : 0;
  }
  /// The owner of what is made now: the primary context if a green one is current, else the current context
  /// itself.
  context_state* owner() const {
    context_state* now = current();
    return now && now->owner ? now->owner : now;
  }
  std::uint64_t context_handle() const { return owner() ? owner()->handle : 0; }
};

/// The calling thread's lane.
lane& this_lane();

/// Called on a thread that ends, because its lane ends, too. Set once, by the session's owner.
void on_lane_end(void (*tell)(lane& ended));

}  // namespace outboard::frontend
