// Waits and queries that need no server, because the program has asked nothing of it since it last said that
// the stream, event or context was idle. This includes deferred errors: the wait that found it idle has
// reported them. Any thread.
#pragma once

#include "frontend/cuda/chapters/capture.hh"
#include "frontend/cuda/objects.hh"
#include "frontend/cuda/requests.hh"

namespace outboard::frontend::cuda {

/// Asked of one thing at a time: what it is, whether it is known to be idle, and to remember that it is.
class idle_question {
 public:
  static idle_question of_context(const lane& own) { return idle_question(nullptr, own.current()); }

  static idle_question of(const lane& own, CUstream stream, bool per_thread) {
    context_state* current = own.current();
    if (!stream && per_thread) stream = CU_STREAM_PER_THREAD;
    if (stream == CU_STREAM_PER_THREAD) return idle_question(nullptr, nullptr);
    if (!stream || stream == CU_STREAM_LEGACY)
      return idle_question(current ? &current->legacy_idle : nullptr, current);
    auto* info = find_object<stream_info>(stream);
    return idle_question(info ? &info->idle : nullptr, nullptr);
  }

  /// Other processes can record an event that they share.
  static idle_question of(const lane&, CUevent event, bool) {
    auto* info = find_object<event_info>(event);
    const bool shared = !info || (info->flags & CU_EVENT_INTERPROCESS) != 0;
    return idle_question(shared ? nullptr : &info->idle, nullptr);
  }

  bool known_idle() const {
    return !any_capture_open() && ((own_ && own_->holds(mark_)) || (context_ && context_->idle.holds(mark_)));
  }

  /// After the server has said so, with no more than what was asked before this question was made.
  void now_idle() const { keep(mark_); }

  /// The same after a request of ours that is activity itself and was over when it was answered. (Whatever
  /// anybody asked beside it counts as well, and makes another mark.)
  void idle_after_request() const {
    if (!any_capture_open()) keep(mark_ + 1);
  }

 private:
  void keep(std::uint64_t mark) const {
    if (own_) {
      own_->keep(mark);
    } else if (context_) {
      context_->idle.keep(mark);
    }
  }

  idle_question(idle_mark* own, context_state* context) : own_(own), context_(context) {}

  idle_mark* own_;
  context_state* context_;
  std::uint64_t mark_ = process::instance().work().mark();
};

}  // namespace outboard::frontend::cuda
