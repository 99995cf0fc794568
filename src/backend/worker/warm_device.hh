// A device whose worker was started before its session: one primary context exists already and waits for the
// program to retain it. The program cannot tell: the context is reported inactive until it retains it, the
// retained one is the program's own then, and whatever a warm context would disturb (other flags, another
// device, a context of the program's own) gives it up first. Owned by the worker, one a process. Calls of the
// main thread go through untouched: they are the worker's own (the snapshot), because requests run on the
// threads of lanes.
#pragma once

#include <memory>

#include "device/device.hh"

namespace outboard::backend {

/// Retains the primary context of `ordinal`; an error when the device cannot be occupied. `inner` outlives
/// it.
result<std::unique_ptr<device::device>> make_warm_device(device::device& inner, int ordinal);

}  // namespace outboard::backend
