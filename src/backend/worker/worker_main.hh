// The worker side of the control socket: opens the device, waits for its one session, serves it and ends.
// Called by main() of the hidden verb `outboard worker`, on the main thread.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "backend/session/session_api.hh"
#include "backend/worker/activity.hh"
#include "base/configuration/config.hh"
#include "device/device.hh"
#include "transport/transport.hh"

namespace outboard::backend {

struct worker_options {
  pid_t parent = -1;   ///< the daemon: this process ends with it
  bool probe = false;  ///< answer with what the device is, and end
  bool tls = false;    ///< clients may come encrypted: what ends TLS is loaded before it confines itself
  bool warm = false;   ///< open the device and a context before there is a session
  /// The session's CUDA_VISIBLE_DEVICES names none of the devices: its driver finds none, however open it is.
  bool no_visible_device = false;
  /// For a session that does not speak CUDA: opens what it speaks in place of a device.
  std::function<result<session_maker>()> open_api = {};
  /// The function gets what the device says of work that failed.
  std::function<result<std::unique_ptr<device::device>>(device::failure_teller)> open_device;
  /// A folder of its own: it confines itself first of all. Empty: it does not.
  std::string confine_to = {};
  /// What it may reach then beside what every worker needs.
  std::vector<std::string> confined_reads = {}, confined_writes = {};
  bool cuda_driver = false;  ///< it is NVIDIA's, for whose needs confinement leaves room
  /// Where its compilers keep what later sessions may use (compiler_cache.hh). Empty: nowhere.
  std::string compilers = {};
  const transport::registry* transports = nullptr;
  int activity = -1;  ///< the descriptor of this worker's activity page, or -1
  activity_page* page = nullptr;
  bool held_by_page = false;  ///< a checkpoint's lock is the daemon's: the device has no driver that locks
  cache_settings cache = {};  ///< of module images; without a directory there is none
  shape_settings shape = {};  ///< what the client sees of the devices
  /// Free memory in bytes of the device with this PCI address, asked without a context; or nothing.
  std::function<std::optional<std::uint64_t>(const std::string& pci_bus_id)> free_memory;
};

/// The exit status.
int run_worker(const worker_options& options);

}  // namespace outboard::backend
