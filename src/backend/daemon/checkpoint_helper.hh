// The process that carries out one step of cuCheckpointProcess* on a worker, by the driver: the daemon never
// opens a driver, and a process cannot checkpoint itself. It gets the asking client's connection over its
// control socket, answers and ends. Called by main() of the hidden verb `outboard worker --checkpoint`, main
// thread.
#pragma once

#include <sys/types.h>

#include <functional>
#include <memory>

#include "device/device.hh"
#include "transport/transport.hh"

namespace outboard::backend {

struct checkpoint_helper_options {
  pid_t parent = -1;  ///< the daemon: this process ends with it
  pid_t worker = -1;  ///< a child of the daemon's
  std::function<result<std::unique_ptr<device::device>>()> open_device;
  const transport::registry* transports = nullptr;
  /// Confines this process, before it reads anything; false: it must not go on. Empty: it is not confined.
  std::function<bool()> confine = {};
};

/// The exit status.
int run_checkpoint_helper(const checkpoint_helper_options& options);

}  // namespace outboard::backend
