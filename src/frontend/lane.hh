// A lane: one client thread's ordered flow of requests, and what the driver keeps for an OS thread, the stack
// of current contexts. Thread-local; made at the thread's first call. The server is notified when the thread
// ends.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace outboard::frontend {

struct context_state;
class process;

/// How an API call was answered, for the trace and the round-trip budget; the costliest way during the call
/// counts.
enum class answered : std::uint8_t { locally, posted, waited };

struct lane {
  std::uint32_t id = 0;
  std::vector<context_state*> contexts;   ///< back() is current; may hold nullptr
  std::vector<std::byte> request, reply;  ///< reused by every call of this thread
  std::vector<std::byte> gathered;        ///< rows of a copy that are apart in the program's memory
  answered how = answered::locally;
  std::int32_t capture_mode =
      0;  ///< CUstreamCaptureMode, exchanged by the program; the driver starts with global
  bool in_callback =
      false;  ///< true while it runs a host function of the program: CUDA calls are not permitted
  std::uint64_t managed_work = 0;  ///< managed memory that the current request may touch
  int depth = 0;                   ///< API calls inside API calls (callbacks) are traced once

  context_state* current() const { return contexts.empty() ? nullptr : contexts.back(); }
  // The following are defined with the context itself, in frontend/cuda/context.hh.
  /// The handle of the context in which requests of this lane run, 0 if it is not active.
  std::uint64_t running_context() const;
  /// The context that owns what this lane creates: for a green context its primary one, else the current one.
  context_state* owner() const;
  std::uint64_t context_handle() const;

  /// CUDA's state in this process (frontend/cuda/process.hh).
  process& state() const;
  mutable process* state_ = nullptr;  ///< nullptr: nobody has asked yet
};

/// The calling thread's lane.
lane& this_lane();

/// Registers what a thread that ends calls with its lane's number. Set once, by the owner of the session.
void on_lane_end(void (*tell)(std::uint32_t lane));

}  // namespace outboard::frontend
