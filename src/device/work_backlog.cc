#include "device/work_backlog.hh"

#include <algorithm>
#include <utility>

namespace outboard::device {

void work_backlog::note(const api::work_record& done) {
  const std::lock_guard lock(mutex_);
  keep(done);
}

void work_backlog::note_kernel(api::work_record done, std::string_view name) {
  const std::lock_guard lock(mutex_);
  if (waiting_.size() < most_waiting_) done.name = number_of(name);
  keep(done);
}

void work_backlog::note_lost(std::uint64_t records) {
  const std::lock_guard lock(mutex_);
  dropped_ += records;
}

bool work_backlog::empty() const {
  const std::lock_guard lock(mutex_);
  return waiting_.empty();
}

recorded_work work_backlog::take() {
  recorded_work out;
  const std::lock_guard lock(mutex_);
  const auto end = waiting_.begin() + static_cast<std::ptrdiff_t>(std::min(waiting_.size(), most_taken_));
  out.records.assign(waiting_.begin(), end);
  waiting_.erase(waiting_.begin(), end);
  out.names = std::exchange(new_names_, {});
  out.dropped = dropped_;
  out.more = !waiting_.empty();
  return out;
}

/// With the lock.
void work_backlog::keep(const api::work_record& done) {
  if (waiting_.size() < most_waiting_) {
    waiting_.push_back(done);
  } else {
    ++dropped_;
  }
}

/// With the lock.
std::uint32_t work_backlog::number_of(std::string_view name) {
  if (const auto known = names_.find(name); known != names_.end()) return known->second;
  new_names_.emplace_back(name);
  return names_.emplace(name, static_cast<std::uint32_t>(names_.size())).first->second;
}

}  // namespace outboard::device
