// The worker side of the control socket: opens what its session will speak, waits for it, serves it and ends.
// Called by main() of the hidden verb `outboard worker`, on the main thread.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <string>
#include <vector>

#include "backend/worker/activity.hh"
#include "backend/worker/worker_api.hh"
#include "base/configuration/config.hh"
#include "transport/transport.hh"

namespace outboard::backend {

struct worker_options {
  pid_t parent = -1;   ///< the daemon: this process ends with it
  bool probe = false;  ///< answer with what the device is, and end
  bool tls = false;    ///< clients may come encrypted: what ends TLS is loaded before it confines itself
  bool warm = false;   ///< there is no session yet
  /// The session's CUDA_VISIBLE_DEVICES names none of the devices: its driver finds none, however open it is.
  bool no_visible_device = false;
  api_opener open_api;
  /// A folder of its own: it confines itself first of all. Empty: it does not.
  std::string confine_to = {};
  /// What it may reach then beside what every worker needs.
  std::vector<std::string> confined_reads = {}, confined_writes = {};
  std::vector<std::string> made_writes = {};  ///< likewise: made if they are not there
  bool cuda_driver = false;                   ///< it is NVIDIA's, for whose needs confinement leaves room
  bool own_code_alone = false;                ///< no driver, compiler or plug-in works in it
  /// Where its compilers keep what later sessions may use (compiler_cache.hh). Empty: nowhere.
  std::string compilers = {};
  const transport::registry* transports = nullptr;
  int activity = -1;  ///< the descriptor of this worker's activity page, or -1
  activity_page* page = nullptr;
  bool held_by_page = false;  ///< a checkpoint's lock is the daemon's: the device has no driver that locks
  shape_settings shape = {};  ///< what the client sees of the devices
};

/// The exit status.
int run_worker(const worker_options& options);

}  // namespace outboard::backend
