// The helper process of the daemon that answers NVML for all clients: it opens the device's NVML once, learns
// over its control socket of sessions and clients, and gives each client a thread. It changes nothing on any
// board. Called by main() of the hidden verb `outboard worker --monitor`, on the main thread.
#pragma once

#include <sys/types.h>

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "base/configuration/config.hh"
#include "device/nvml.hh"
#include "transport/transport.hh"

namespace outboard::backend::nvml {

struct helper_options {
  pid_t parent = -1;                 ///< the daemon: this process ends with it
  std::vector<std::string> visible;  ///< PCI addresses of the devices that it lends
  bool in_order = false;             ///< clients see them in that order, else in NVML's own
  shape_settings shape = {};         ///< their names and memory as clients see them
  std::function<result<std::unique_ptr<device::nvml_device>>(device::activity_source)> open;
  const transport::registry* transports = nullptr;
  bool tls = false;  ///< clients may come encrypted: what ends TLS is loaded before it confines itself
  /// Confines this process, before it reads anything; false: it must not go on. Empty: it is not confined.
  std::function<bool()> confine = {};
};

/// The exit status.
int run_helper(const helper_options& options);

}  // namespace outboard::backend::nvml
