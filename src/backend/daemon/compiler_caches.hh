// The daemon's side of compiler_cache.hh: it decides whose sessions get a folder, and when a separate process
// checks whether the folders hold too much. Owned by the table of workers; the daemon's one thread.
#pragma once

#include <sys/types.h>

#include <algorithm>
#include <chrono>
#include <functional>
#include <optional>
#include <string>

#include "backend/daemon/child.hh"
#include "backend/daemon/event_loop.hh"
#include "backend/daemon/guests.hh"
#include "backend/daemon/worker_environment.hh"
#include "backend/disk/compiler_cache.hh"

namespace outboard::backend {

class compiler_caches {
 public:
  /// `start_tidier` starts a process that calls tidy_compiler_cache().
  compiler_caches(event_loop& loop, compiler_cache_settings settings,
                  std::function<result<child>()> start_tidier);

  /// For a session whose worker will be confined. Nothing: its compilers use the session's own folder. If
  /// something is wrong, the reason is logged once.
  std::optional<cache_lease> lease(const accepted_session& session, const variable_source& variable);

  /// The session is over, together with all processes that it started.
  void give_back(cache_lease lease);

  /// Takes note of an ended process; returns whether it was our tidier.
  bool tidier_ended(pid_t process);

  std::uint64_t most_of_one() const { return std::min(settings_.per_identity, settings_.size); }

 private:
  void tidy_soon();
  void tidy();
  std::optional<cache_lease> without(const std::string& why);

  event_loop& loop_;
  const compiler_cache_settings settings_;
  std::function<result<child>()> start_tidier_;
  child tidier_;
  event_loop::clock::time_point began_{};
  event_loop::clock::duration pause_;
  event_loop::id timer_ = 0;
  bool once_more_ = false, looked_ = false;
  std::string reported_;               ///< why there is no cache, as last logged
  std::optional<std::string> around_;  ///< the place that every session may read and that holds the directory
};

/// Runs the tidier, which ends with its daemon. Returns the exit status.
int run_cache_tidier(pid_t parent, const compiler_cache_settings& settings);

}  // namespace outboard::backend
