// The rules of the warm pool, without processes and without a clock: which idle worker a session gets,
// whether to start another one, and which are dropped. Owned by the workers' table; one thread.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <deque>
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
    std::size_t burst = 1;  ///< idle ones of a key while sessions of it come fast; below per_key: per_key
    std::size_t most = 8;
    std::chrono::seconds idle{600};
  };
  /// Sessions that began so long ago or less count as one burst.
  static constexpr std::chrono::seconds recent{30};
  struct counts {
    std::uint64_t hits = 0, misses = 0, dropped = 0;
  };

  explicit pool(settings s) : settings_(s) {}

  /// A session of this identity with this key begins: returns an idle worker for it, which leaves the pool,
  /// or none (the session starts a cold one).
  std::optional<worker_id> take(const std::string& key, const std::string& identity, time now);

  /// How many more warm workers to start for the key now, besides those that are still starting. As many
  /// should wait as sessions have begun recently, within the limits.
  std::size_t wants(const std::string& key, time now) const;

  void add(const std::string& key, worker_id id);
  /// The worker has ended by itself.
  void remove(worker_id id);

  /// Workers to end now: those of keys for which no session came during the idle time, those that waited for
  /// more of a burst that is over, and, above the limit of all keys, those that have been unused for longest,
  /// of the identity that has most keys of its own. They have left the pool.
  std::vector<worker_id> drop(time now);
  std::vector<worker_id> drop_all();
  /// When drop() has something to do next.
  std::optional<time> next_drop() const;

  std::size_t size() const;
  const counts& counted() const { return counts_; }

 private:
  struct entry {
    std::vector<worker_id> idle;
    /// Whose sessions alone had this key; empty: those of several.
    std::optional<std::string> owner;
    time wanted{};
    std::deque<time> sessions;  ///< the last ones that began: no more than matter
  };
  std::size_t target(const entry& e, time now) const;
  /// When the key has too many by itself; nothing: never.
  std::optional<time> surplus_from(const entry& e) const;
  void drop_entry(entry& e, std::vector<worker_id>& dropped);
  void drop_one_key(bool with_idle, std::vector<worker_id>& dropped);

  settings settings_;
  std::map<std::string, entry> keys_;
  counts counts_;
};

}  // namespace outboard::backend
