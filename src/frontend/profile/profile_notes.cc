#include "frontend/profile/profile_notes.hh"

#include <algorithm>
#include <iterator>

namespace outboard::frontend {
namespace {

/// The null handle is the legacy stream's.
std::uint64_t shown(std::uint64_t stream) { return stream == 0 ? 1 : stream; }

std::string find(const std::map<std::uint64_t, std::string>& names, std::uint64_t handle) {
  const auto found = names.find(handle);
  return found == names.end() ? std::string() : found->second;
}

}  // namespace

void profile_notes::note(annotated&& about) {
  if (waiting_.fetch_add(1, std::memory_order_relaxed) >= most_waiting) {
    waiting_.fetch_sub(1, std::memory_order_relaxed);
    lost_.fetch_add(1, std::memory_order_relaxed);
    return;
  }
  part& p = parts_[static_cast<std::size_t>(about.thread) % parts_.size()];
  const std::lock_guard lock(p.mutex);
  p.all.push_back(std::move(about));
}

std::vector<annotated> profile_notes::take() {
  std::vector<annotated> all;
  for (part& p : parts_) {
    const std::lock_guard lock(p.mutex);
    std::ranges::move(p.all, std::back_inserter(all));
    p.all.clear();
  }
  waiting_.fetch_sub(all.size(), std::memory_order_relaxed);
  std::ranges::stable_sort(all, {}, &annotated::begin);
  return all;
}

void profile_notes::name(given_name&& given) {
  const std::lock_guard lock(names_mutex_);
  switch (given.what) {
    case named_thing::thread:
      threads_[static_cast<std::int32_t>(given.handle)] = std::move(given.name);
      return;
    case named_thing::device:
      devices_[given.handle] = std::move(given.name);
      return;
    case named_thing::stream:
      streams_[shown(given.handle)] = std::move(given.name);
      if (!stream_of_call_)
        stream_of_call_ = std::make_unique<recent_numbers<std::uint64_t>>(std::size_t{1} << 20);
      streams_named_.store(true, std::memory_order_release);  // partner: streams()
      return;
    case named_thing::context:
      return;  // no row is a context's
  }
}

std::vector<std::pair<std::int32_t, std::string>> profile_notes::take_threads() {
  const std::lock_guard lock(names_mutex_);
  std::vector<std::pair<std::int32_t, std::string>> all(threads_.begin(), threads_.end());
  threads_.clear();
  return all;
}

std::string profile_notes::device(std::uint32_t ordinal) const {
  const std::lock_guard lock(names_mutex_);
  return find(devices_, ordinal);
}

void profile_notes::note_stream(std::uint32_t call, std::uint64_t stream) {
  if (call != 0) stream_of_call_->note(call, shown(stream));
}

std::string profile_notes::stream_of(std::uint32_t call) const {
  const std::uint64_t handle = streams() ? stream_of_call_->find(call) : 0;
  if (handle == 0) return {};
  const std::lock_guard lock(names_mutex_);
  return find(streams_, handle);
}

}  // namespace outboard::frontend
