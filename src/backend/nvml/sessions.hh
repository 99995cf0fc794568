// The sessions of this server as the helper knows them: which worker process stands for which process of
// which client. A client sees only its own, by its own process numbers. The daemon reports the sessions; any
// thread.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "backend/daemon/control.hh"
#include "backend/identity/memory_page.hh"
#include "backend/worker/activity.hh"
#include "device/nvml.hh"

namespace outboard::backend::nvml {

/// Whose sessions a client may see: those of the same peer, as the transport knows it, and of the same host,
/// as clients name it (containers on one host have process numbers of their own).
struct identity {
  std::string peer, host;
  bool operator==(const identity&) const = default;
};

struct own_process {
  pid_t worker = -1;
  unsigned client_process = 0;
  std::optional<std::uint64_t> device_bytes;  ///< where the worker's device reports it
};

class session_book {
 public:
  void began(const session_message& session, const unique_fd& activity);
  /// The session's identity counts its memory there.
  void shares(pid_t worker, const unique_fd& memory);
  void over(pid_t worker);

  std::vector<own_process> of(const identity& who) const;
  std::vector<device::worker_activity> all() const;
  /// Returns how many bytes of a board (board_number()) the sessions of this process hold, by their ledgers.
  /// If the process has no session, returns the sum over all sessions of its peer.
  std::uint64_t held_on(std::uint64_t board, const identity& who, unsigned process) const;
  /// Returns how many bytes of a board are left for the client's identity; nothing: it has no limit, or no
  /// session that says so.
  std::optional<std::uint64_t> left_on(std::uint64_t board, const identity& who) const;

 private:
  struct entry {
    identity who;
    unsigned client_process = 0;
    std::optional<shown_activity> activity;
    std::shared_ptr<const memory_page> memory = nullptr;
  };
  mutable std::mutex mutex_;
  std::map<pid_t, entry> sessions_;  ///< by worker
};

}  // namespace outboard::backend::nvml
