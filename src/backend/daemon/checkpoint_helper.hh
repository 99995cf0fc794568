// The process that carries out one step of cuCheckpointProcess* on a worker through the driver: the daemon
// does not open a driver, and a process cannot checkpoint itself. It gets the asking client's connection over
// its control socket, answers and ends. Called by main() of the hidden verb `outboard worker --checkpoint`,
// main thread.
#pragma once

#include <sys/types.h>

#include <functional>
#include <memory>

#include "device/device.hh"
#include "transport/transport.hh"

namespace outboard::backend {

struct checkpoint_helper_options {
  pid_t parent = -1;  ///< the daemon: this process ends with it
  pid_t worker = -1;  ///< a child of the daemon
  std::function<result<std::unique_ptr<device::device>>()> open_device;
  const transport::registry* transports = nullptr;
};

/// Returns the exit status.
int run_checkpoint_helper(const checkpoint_helper_options& options);

}  // namespace outboard::backend
