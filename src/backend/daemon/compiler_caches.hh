// The daemon's side of compiler_cache.hh: which sessions get a folder, and when a process of its own checks
// whether the folders hold too much. Owned by the table of workers; the daemon's one thread.
#pragma once

#include <sys/types.h>

#include <algorithm>
#include <chrono>
#include <functional>
#include <optional>
#include <string>

#include "backend/daemon/event_loop.hh"
#include "backend/daemon/guests.hh"
#include "backend/daemon/workers/child.hh"
#include "backend/daemon/workers/worker_environment.hh"
#include "backend/disk/compiler_cache.hh"

namespace outboard::backend {

/// Whose sessions share a folder.
struct cache_owner {
  std::string identity;
  image_scope scope{};
  std::string from;  ///< for logs
};

class compiler_caches {
 public:
  /// `start_tidier` starts a process that calls tidy_compiler_cache().
  compiler_caches(event_loop& loop, compiler_cache_settings settings,
                  std::function<result<child>()> start_tidier);

  /// For a worker that will be confined. Nothing: its compilers keep what they keep in its own folder; the
  /// log says so once where something is wrong.
  std::optional<cache_lease> lease(const cache_owner& owner, const variable_source& variable);

  /// Its session is over, with all that it has started.
  void give_back(cache_lease lease);

  /// Of this process, if it is ours.
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
  std::string told_;
  std::optional<std::string> around_;  ///< a place that everybody may read and in which the directory lies
};

/// The tidier, which ends with its daemon. `confine` as of run_folder_remover(). The exit status.
int run_cache_tidier(pid_t parent, const compiler_cache_settings& settings,
                     const std::function<bool()>& confine);

}  // namespace outboard::backend
