#include "frontend/cuda/error_log.hh"

#include <pthread.h>

#include <algorithm>
#include <cstdio>
#include <ctime>
#include <vector>

#include "frontend/cuda/ends.hh"

namespace outboard::frontend::cuda {
namespace {

constexpr std::string_view lost = "Some messages were overwritten and are missing\n";
constexpr std::string_view no_room =
    "The provided buffer is not large enough to hold all messages. Some messages will be missing\n";

/// [time of day][thread][CUDA][E] message
std::string line_of(const std::string& message) {
  timespec now{};
  ::clock_gettime(CLOCK_REALTIME, &now);
  tm day{};
  ::localtime_r(&now.tv_sec, &day);
  char head[96];
  std::snprintf(head, sizeof head, "[%02d:%02d:%02d.%03ld][%llu][CUDA][E] ", day.tm_hour, day.tm_min,
                day.tm_sec, now.tv_nsec / 1000000, static_cast<unsigned long long>(::pthread_self()));
  return head + message + "\n";
}

std::string_view name_of(CUresult code) {
  const char* name = nullptr;
  return ends::cuGetErrorName(code, &name) == CUDA_SUCCESS ? name : "unknown error";
}

}  // namespace

error_log& error_log::instance() {
  static auto* const made = new error_log;  // never destroyed: calls come from destructors after main too
  return *made;
}

void error_log::note(std::string_view function, CUresult code) {
  std::string message = "Returning " + std::to_string(code) + " (";
  message.append(name_of(code)).append(") from ").append(function);
  std::vector<listener> called;
  {
    const std::lock_guard lock(mutex_);
    lines_.push_back(line_of(message));
    bytes_ += lines_.back().size();
    ++end_;
    while (bytes_ > most_bytes) {
      bytes_ -= lines_.front().size();
      lines_.pop_front();
    }
    for (const auto& [handle, one] : listeners_) called.push_back(one);
  }
  for (const listener& one : called) one.call(one.data, CU_LOG_LEVEL_ERROR, message.data(), message.size());
}

std::uintptr_t error_log::add(CUlogsCallback callback, void* data) {
  const std::lock_guard lock(mutex_);
  listeners_[++last_handle_] = {callback, data};
  return last_handle_;
}

bool error_log::remove(std::uintptr_t handle) {
  const std::lock_guard lock(mutex_);
  return listeners_.erase(handle) != 0;
}

std::uint32_t error_log::end() const {
  const std::lock_guard lock(mutex_);
  return end_;
}

std::string error_log::text(std::uint32_t& from) const {
  const std::lock_guard lock(mutex_);
  const std::uint32_t first = end_ - static_cast<std::uint32_t>(lines_.size());
  std::string out;
  if (from < first) out = lost;
  for (std::uint32_t i = std::max(from, first); i < end_; ++i) out += lines_[i - first];
  from = end_;
  return out;
}

std::string error_log::text_within(std::uint32_t& from, std::size_t room) const {
  std::uint32_t end = from;
  std::string all = text(end);
  if (all.size() < room || all.empty()) return from = end, all;
  // Whole lines from the back, below the line that says so.
  std::size_t cut = all.size();
  while (cut > 0) {
    const std::size_t before = all.rfind('\n', cut - 2);
    const std::size_t start = before == std::string::npos || cut < 2 ? 0 : before + 1;
    if (no_room.size() + (all.size() - start) >= room) break;
    cut = start;
  }
  if (cut == all.size()) return {};
  from = end;
  return std::string(no_room) + all.substr(cut);
}

}  // namespace outboard::frontend::cuda
