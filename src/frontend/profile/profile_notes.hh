// The program's annotations that the profile has not written yet, and the names that it has given. Owned by
// the profile. Any thread may note and take; threads that note at once seldom wait for each other.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "base/recent_numbers.hh"
#include "frontend/annotations.hh"

namespace outboard::frontend {

class profile_notes {
 public:
  /// What is more than can wait is lost, and counted.
  void note(annotated&& about);
  /// Since the last time, by the times at which they began.
  std::vector<annotated> take();
  std::uint64_t lost() const { return lost_.load(std::memory_order_relaxed); }

  void name(given_name&& given);
  /// Threads that have a name since the last time.
  std::vector<std::pair<std::int32_t, std::string>> take_threads();
  /// Empty: it has no name.
  std::string device(std::uint32_t ordinal) const;
  /// Some stream has a name: where calls send their work is worth noting.
  bool streams() const { return streams_named_.load(std::memory_order_acquire); }
  /// While streams() is true.
  void note_stream(std::uint32_t call, std::uint64_t stream);
  /// The name of the stream that this call's work went to. Empty: not known, or it has none.
  std::string stream_of(std::uint32_t call) const;

  static constexpr std::size_t most_waiting = std::size_t{1} << 20;

 private:
  struct alignas(64) part {
    std::mutex mutex;
    std::vector<annotated> all;
  };
  std::array<part, 16> parts_;  // by thread
  std::atomic<std::size_t> waiting_{0};
  std::atomic<std::uint64_t> lost_{0};

  mutable std::mutex names_mutex_;  // guards what follows
  std::map<std::int32_t, std::string> threads_;
  std::map<std::uint64_t, std::string> devices_, streams_;
  std::atomic<bool> streams_named_{false};
  /// By call: the handle of its stream. Made when the first stream gets a name.
  std::unique_ptr<recent_numbers<std::uint64_t>> stream_of_call_;
};

}  // namespace outboard::frontend
