#include "backend/daemon/workers/pool.hh"

#include <algorithm>
#include <cstddef>
#include <tuple>

namespace outboard::backend {
namespace {

/// A client chooses its key; it shall not fill the daemon's memory with thousands of them.
constexpr std::size_t most_keys = 64;

}  // namespace

std::optional<pool::worker_id> pool::take(const std::string& key, const std::string& identity, time now) {
  // Without a pool no key is remembered: a client could send thousands of different ones.
  if (settings_.per_key == 0 || settings_.most == 0) {
    ++counts_.misses;
    return std::nullopt;
  }
  const auto [at, is_new] = keys_.try_emplace(key);
  entry& e = at->second;
  if (is_new) e.owner = identity;
  if (e.owner != identity) e.owner.reset();
  e.wanted = now;
  e.sessions.push_back(now);
  if (e.sessions.size() > settings_.burst) e.sessions.pop_front();
  if (e.idle.empty()) {
    ++counts_.misses;
    return std::nullopt;
  }
  ++counts_.hits;
  const worker_id id = e.idle.front();  // the oldest: the likeliest to be ready
  e.idle.erase(e.idle.begin());
  return id;
}

std::size_t pool::target(const entry& e, time now) const {
  const auto of_late = static_cast<std::size_t>(
      std::ranges::count_if(e.sessions, [&](time began) { return now - began < recent; }));
  return std::max(settings_.per_key, of_late);
}

std::size_t pool::wants(const std::string& key, time now) const {
  const auto at = keys_.find(key);
  if (at == keys_.end()) return 0;
  const std::size_t idle = at->second.idle.size(), wanted = target(at->second, now), all = size();
  const std::size_t missing = wanted > idle ? wanted - idle : 0;
  // A burst of one key takes nothing from the others; its first one may (drop()).
  const std::size_t room = settings_.most > all ? settings_.most - all : 0;
  const std::size_t own = idle < settings_.per_key ? settings_.per_key - idle : 0;
  return std::min(missing, std::max(room, own));
}

std::optional<pool::time> pool::surplus_from(const entry& e) const {
  if (e.idle.size() <= settings_.per_key) return std::nullopt;
  // With n idle ones: as soon as fewer than n sessions count as recent.
  const std::size_t needed = e.idle.size();
  if (e.sessions.size() < needed) return e.wanted;
  return e.sessions[e.sessions.size() - needed] + recent;
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

/// A client chooses its key. Who has sessions with ever other ones has only the workers of its own turned
/// out. `with_idle`: one that has idle workers.
void pool::drop_one_key(bool with_idle, std::vector<worker_id>& dropped) {
  std::map<std::string, std::size_t> owned;
  const auto may_go = [&](const entry& e) { return !with_idle || !e.idle.empty(); };
  for (const auto& [key, e] : keys_)
    if (e.owner && may_go(e)) ++owned[*e.owner];
  const auto rank = [&](const auto& each) {
    const entry& e = each.second;
    return std::tuple(!may_go(e), e.owner ? -static_cast<std::ptrdiff_t>(owned[*e.owner]) : -1, e.wanted);
  };
  const auto first = std::min_element(keys_.begin(), keys_.end(),
                                      [&](const auto& a, const auto& b) { return rank(a) < rank(b); });
  drop_entry(first->second, dropped);
  keys_.erase(first);
}

std::vector<pool::worker_id> pool::drop(time now) {
  std::vector<worker_id> dropped;
  for (auto at = keys_.begin(); at != keys_.end();) {
    entry& e = at->second;
    // The youngest: the oldest are the likeliest to be ready.
    for (; e.idle.size() > target(e, now); e.idle.pop_back(), ++counts_.dropped)
      dropped.push_back(e.idle.back());
    if (now - e.wanted < settings_.idle) {
      ++at;
      continue;
    }
    drop_entry(e, dropped);
    at = keys_.erase(at);
  }
  while (size() > settings_.most) drop_one_key(true, dropped);
  while (keys_.size() > most_keys) drop_one_key(false, dropped);
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
    time due = e.wanted + settings_.idle;
    if (const auto surplus = surplus_from(e)) due = std::min(due, *surplus);
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
