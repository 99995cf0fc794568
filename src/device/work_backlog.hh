// What a recorder knows and nobody has taken yet: records in the order in which they came, and the names of
// kernels by number. Owned by a recorder; any thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <mutex>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "api/cuda/work_record.hh"
#include "device/work_recorder.hh"

namespace outboard::device {

class work_backlog {
 public:
  /// Records that wait; more are dropped, and counted.
  static constexpr std::size_t most_waiting = 1u << 20;
  /// Records of one take(): a reply that is not too long.
  static constexpr std::size_t most_taken = 32u << 10;

  explicit work_backlog(std::size_t waiting = most_waiting, std::size_t taken = most_taken)
      : most_waiting_(waiting), most_taken_(taken) {}

  /// A copy or fill.
  void note(const api::work_record& done);
  /// `name`: as the module has it; the record's own is set.
  void note_kernel(api::work_record done, std::string_view name);
  /// The device itself has lost so many.
  void note_lost(std::uint64_t records);

  bool empty() const;
  /// The oldest ones. A name comes with or before the first record that has its number.
  recorded_work take();

 private:
  struct text_hash : std::hash<std::string_view> {
    using is_transparent = void;
  };

  void keep(const api::work_record& done);
  std::uint32_t number_of(std::string_view name);

  const std::size_t most_waiting_, most_taken_;
  mutable std::mutex mutex_;  // guards what follows
  std::deque<api::work_record> waiting_;
  std::unordered_map<std::string, std::uint32_t, text_hash, std::equal_to<>> names_;
  std::vector<std::string> new_names_;
  std::uint64_t dropped_ = 0;
};

}  // namespace outboard::device
