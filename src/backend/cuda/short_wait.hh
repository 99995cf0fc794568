// Looks for a while, with the turn, whether the device is done: most waits of real programs end within it,
// and to hand the turn over and back costs more. Of the session, with its turn.
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <set>
#include <span>

#include "backend/cuda/call.hh"
#include "backend/cuda/work_in_streams.hh"

namespace outboard::backend {

/// Streams whose capture has begun and, as far as the driver says, not ended. With the session's turn.
class open_captures {
 public:
  bool any() const { return !open_.empty(); }
  void began(CUstream stream) { open_.insert(stream); }
  void ended(CUstream stream) { open_.erase(stream); }

 private:
  std::set<CUstream> open_;
};

class short_wait {
 public:
  explicit short_wait(const api::driver_table& driver) : driver_(driver) {}

  /// What a question about completion says in the end; CUDA_ERROR_NOT_READY stands for what cannot be asked,
  /// too.
  CUresult for_stream(call& c, CUstream stream, bool per_thread);
  CUresult for_event(call& c, CUevent event);
  /// CUDA_SUCCESS or CUDA_ERROR_NOT_READY.
  CUresult for_context(call& c);

  /// Gives the stream something to do that waits for all that it waits for itself.
  void occupy(call& c, CUstream stream);

  void drop_context(std::uint64_t context) { events_.erase(context); }

 private:
  using marks = std::array<CUevent, work_in_streams::most>;
  bool mark_ends(call& c, std::span<const CUstream> streams, bool per_thread, std::span<CUevent> ends);

  const api::driver_table& driver_;
  /// By the handle of the context that they belong to. Recorded again while nobody waits for them: whoever
  /// has the turn.
  std::map<std::uint64_t, marks> events_;
};

}  // namespace outboard::backend
