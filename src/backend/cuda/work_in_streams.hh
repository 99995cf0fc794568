// In which streams the device may have work of one context left, as far as that is known: a wait for the
// whole context can then look at them alone. Of the session, with its turn; done() from any thread.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <span>

#include "api/cuda/headers.hh"

namespace outboard::backend {

/// Requests that leave the device nothing to do, or wait until it is done.
bool leaves_no_work(std::uint32_t opcode);

class work_in_streams {
 public:
  static constexpr std::size_t most = 4;

  /// `context`: handle of the one that the stream belongs to or, for the default stream, stands in.
  void on(std::uint64_t context, CUstream stream) {
    forget_if_done();
    ++mark_;
    if (context != context_) return other_context(context, stream);
    for (std::size_t i = 0; i < count_; ++i) {
      if (streams_[i] == stream) return;
    }
    add(stream);
  }
  /// A request was made of which it is not known what it leaves to do, and where.
  void somewhere() {
    forget_if_done();
    ++mark_;
    spread_ = true;
  }

  /// All streams that may have work of the context; none: not known.
  std::span<const CUstream> all_of(std::uint64_t context) {
    forget_if_done();
    if (spread_ || context != context_) return {};
    return std::span(streams_).first(count_);
  }

  /// What was said so far, for done().
  std::uint64_t mark() const { return mark_; }
  /// Whoever took the mark has waited for the whole context since.
  void done(std::uint64_t context, std::uint64_t mark) {
    done_context_.store(context, std::memory_order_relaxed);
    done_.store(mark, std::memory_order_release);  // partner: forget_if_done()
  }

 private:
  void add(CUstream stream) {
    if (count_ == most) {
      spread_ = true;
    } else {
      streams_[count_++] = stream;
    }
  }
  /// One context at a time: that of another one's work is known again once a wait has found none left.
  void other_context(std::uint64_t context, CUstream stream) {
    // Work of before the first that is known, wherever it is, is over once this context was waited for, or no
    // concern of it.
    if (context_ == 0 || (count_ == 0 && !spread_ && !mixed_)) {
      context_ = context;
      return add(stream);
    }
    spread_ = mixed_ = true;
  }
  void forget_if_done() {
    const std::uint64_t done = done_.load(std::memory_order_acquire);
    if (done != mark_ || done == forgotten_) return;
    forgotten_ = done;
    const std::uint64_t context = done_context_.load(std::memory_order_relaxed);
    if (mixed_ || (context_ != 0 && context != context_)) return;
    count_ = 0, spread_ = false, context_ = context;
  }

  std::array<CUstream, most> streams_{};
  std::size_t count_ = 0;
  std::uint64_t context_ = 0, mark_ = 1, forgotten_ = 0;
  bool spread_ = false;
  bool mixed_ = false;  ///< work of several contexts was seen: known no more
  std::atomic<std::uint64_t> done_{0}, done_context_{0};
};

}  // namespace outboard::backend
