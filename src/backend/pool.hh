// The rules of the warm pool, without processes and without a clock: which idle worker a session gets,
// whether one more shall be started, which are dropped. Owned by the workers' table; one thread.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

namespace outboard::backend {

class pool {
 public:
  using time = std::chrono::steady_clock::time_point;
  using worker_id = std::uint64_t;

  struct settings {
    std::size_t per_key = 1;
    std::size_t most = 8;
    std::chrono::seconds idle{600};
  };
  struct counts {
    std::uint64_t hits = 0, misses = 0, dropped = 0;
  };

  explicit pool(settings s) : settings_(s) {}

  /// A session with this key begins: an idle worker for it, which leaves the pool, or none (a cold one must
  /// do).
  std::optional<worker_id> take(const std::string& key, time now);

  /// Whether one more warm worker shall be started for the key now, counting those that still start.
  bool wants_one(const std::string& key) const;

  void add(const std::string& key, worker_id id);
  /// The worker has ended by itself.
  void remove(worker_id id);

  /// Workers to end now: of keys that nobody asked for during the idle time, and the longest unwanted ones
  /// above the limit of all keys. They have left the pool.
  std::vector<worker_id> drop(time now);
  std::vector<worker_id> drop_all();
  /// When drop() has something to do next.
  std::optional<time> next_drop() const;

  std::size_t size() const;
  const counts& counted() const { return counts_; }

 private:
  struct entry {
    std::vector<worker_id> idle;
    time wanted{};
  };
  void drop_entry(entry& e, std::vector<worker_id>& dropped);

  settings settings_;
  std::map<std::string, entry> keys_;
  counts counts_;
};

}  // namespace outboard::backend
