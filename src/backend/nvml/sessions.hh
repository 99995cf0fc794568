// The sessions of this server as the helper knows them: which worker process stands for which process of
// which client. A client is shown its own alone, by its own numbers. Told by the daemon; any thread.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <map>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "backend/daemon/control.hh"
#include "backend/worker/activity.hh"
#include "device/nvml.hh"

namespace outboard::backend::nvml {

/// Whose sessions somebody may see: those of the same peer, as the transport knows it, and of the same host
/// by its own word (containers of one host have process numbers of their own).
struct identity {
  std::string peer, host;
  bool operator==(const identity&) const = default;
};

struct own_process {
  pid_t worker = -1;
  unsigned client_process = 0;
  std::optional<std::uint64_t> device_bytes;  ///< where the worker's device tells itself
};

class session_book {
 public:
  void began(const session_message& session, const unique_fd& activity);
  void over(pid_t worker);

  std::vector<own_process> of(const identity& who) const;
  std::vector<device::worker_activity> all() const;
  /// Bytes of a board (board_number()) that the sessions of this process hold by their ledgers; if it has
  /// none, those of all of this peer's.
  std::uint64_t held_on(std::uint64_t board, const identity& who, unsigned process) const;

 private:
  struct entry {
    identity who;
    unsigned client_process = 0;
    std::optional<shown_activity> activity;
  };
  mutable std::mutex mutex_;
  std::map<pid_t, entry> sessions_;  ///< by worker
};

}  // namespace outboard::backend::nvml
