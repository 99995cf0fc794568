// The folders in which confined workers may write, one for each, below one of the daemon's own. A process of
// their own removes them, because what a stranger's program left may take its time. However the daemon ends,
// that process then ends what such programs have started. Owned by the daemon; its one thread.
#pragma once

#include <sys/types.h>

#include <chrono>
#include <cstdint>
#include <functional>
#include <string>

#include "backend/daemon/workers/child.hh"

namespace outboard::backend {

class session_folders {
 public:
  /// `start_remover` starts a process that calls run_folder_remover() for this folder; when the first is
  /// wanted, or before.
  explicit session_folders(std::function<result<child>(const std::string& above)> start_remover)
      : start_remover_(std::move(start_remover)) {}
  /// Removes all that are left, and waits a little for that.
  ~session_folders();
  session_folders(const session_folders&) = delete;
  session_folders& operator=(const session_folders&) = delete;

  /// Starts the remover now rather than with the first folder.
  status prepare() { return above_.empty() ? begin() : status(); }
  /// A new one (0700), by its full path.
  result<std::string> make();
  /// Of this worker, which leads its process group: the group ends with the daemon, too.
  void give(const std::string& folder, pid_t worker);
  /// Nobody uses it any more: it is removed soon.
  void remove(const std::string& folder);
  /// Was that the remover? Another one is started with the first folder that is wanted after a pause, and
  /// removes in the end what this one has left.
  bool remover_ended(pid_t process);

 private:
  status begin();
  status start_remover();
  void tell(const std::string& what, int descriptor = -1);

  std::function<result<child>(const std::string&)> start_remover_;
  std::string above_;
  child remover_;
  std::chrono::steady_clock::time_point not_before_{};  ///< another remover is started
  std::uint64_t made_ = 0;
};

/// The remover: removes what the daemon names over the control socket, and `above` with all that is in it
/// when that is closed. `confine` confines this process, before anything else is done; false: it must not go
/// on. The exit status.
int run_folder_remover(const std::string& above, const std::function<bool()>& confine = {});

}  // namespace outboard::backend
