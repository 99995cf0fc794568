#include "backend/pool.hh"

#include <algorithm>

namespace outboard::backend {
namespace {

/// A client chooses its key; it shall not fill the daemon's memory with thousands of them.
constexpr std::size_t most_keys = 64;

}  // namespace

std::optional<pool::worker_id> pool::take(const std::string& key, time now) {
  // Without a pool no key is remembered: a client could send thousands of different ones.
  if (settings_.per_key == 0 || settings_.most == 0) {
    ++counts_.misses;
    return std::nullopt;
  }
  entry& e = keys_[key];
  e.wanted = now;
  if (e.idle.empty()) {
    ++counts_.misses;
    return std::nullopt;
  }
  ++counts_.hits;
  const worker_id id = e.idle.front();  // the oldest: the likeliest to be ready
  e.idle.erase(e.idle.begin());
  return id;
}

bool pool::wants_one(const std::string& key) const {
  const auto at = keys_.find(key);
  return at != keys_.end() && at->second.idle.size() < settings_.per_key;
}

void pool::add(const std::string& key, worker_id id) { keys_[key].idle.push_back(id); }

void pool::remove(worker_id id) {
  for (auto& [key, e] : keys_) std::erase(e.idle, id);
}

void pool::drop_entry(entry& e, std::vector<worker_id>& dropped) {
  dropped.insert(dropped.end(), e.idle.begin(), e.idle.end());
  counts_.dropped += e.idle.size();
  e.idle.clear();
}

std::vector<pool::worker_id> pool::drop(time now) {
  std::vector<worker_id> dropped;
  for (auto at = keys_.begin(); at != keys_.end();) {
    if (now - at->second.wanted < settings_.idle) {
      ++at;
      continue;
    }
    drop_entry(at->second, dropped);
    at = keys_.erase(at);
  }
  while (size() > settings_.most) {
    const auto oldest = std::min_element(keys_.begin(), keys_.end(), [](const auto& a, const auto& b) {
      if (a.second.idle.empty() != b.second.idle.empty()) return b.second.idle.empty();
      return a.second.wanted < b.second.wanted;
    });
    drop_entry(oldest->second, dropped);
    keys_.erase(oldest);
  }
  while (keys_.size() > most_keys) {
    const auto oldest = std::min_element(keys_.begin(), keys_.end(), [](const auto& a, const auto& b) {
      return a.second.wanted < b.second.wanted;
    });
    drop_entry(oldest->second, dropped);
    keys_.erase(oldest);
  }
  return dropped;
}

std::vector<pool::worker_id> pool::drop_all() {
  std::vector<worker_id> dropped;
  for (auto& [key, e] : keys_) drop_entry(e, dropped);
  keys_.clear();
  return dropped;
}

std::optional<pool::time> pool::next_drop() const {
  std::optional<time> next;
  for (const auto& [key, e] : keys_) {
    const time due = e.wanted + settings_.idle;
    if (!next || due < *next) next = due;
  }
  return next;
}

std::size_t pool::size() const {
  std::size_t n = 0;
  for (const auto& [key, e] : keys_) n += e.idle.size();
  return n;
}

}  // namespace outboard::backend
