// The folders in which confined workers may write: one for each worker, below a folder of the daemon. A
// separate process removes them, because that may take long after a stranger's program. When the daemon ends,
// in whatever way, that process also ends the processes that such programs started. Owned by the daemon; its
// one thread.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <functional>
#include <string>

#include "backend/daemon/child.hh"

namespace outboard::backend {

class session_folders {
 public:
  /// `start_remover` starts a process that calls run_folder_remover() for the folder `above`. It is called
  /// with the first make().
  explicit session_folders(std::function<result<child>(const std::string& above)> start_remover)
      : start_remover_(std::move(start_remover)) {}
  /// Removes the folders that are left, and waits a moment for that.
  ~session_folders();
  session_folders(const session_folders&) = delete;
  session_folders& operator=(const session_folders&) = delete;

  /// Makes a new folder (0700); returns its full path.
  result<std::string> make();
  /// Assigns the folder to this worker, which leads its process group and has not been waited for. The whole
  /// group ends with the daemon, unless the daemon has waited for the worker before: it then has ended the
  /// group itself.
  void give(const std::string& folder, pid_t worker);
  /// Removes the folder soon. No process uses it any more.
  void remove(const std::string& folder);

 private:
  status begin();
  void tell(const std::string& what, int descriptor = -1);

  std::function<result<child>(const std::string&)> start_remover_;
  std::string above_;
  child remover_;
  std::uint64_t made_ = 0;
};

/// Runs the remover: it removes what the daemon names over the control socket, and `above` with all its
/// contents when that socket is closed. Returns the exit status.
int run_folder_remover(const std::string& above);

}  // namespace outboard::backend
