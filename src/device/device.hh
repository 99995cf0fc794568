// The contract of a device: it executes calls of the driver API. A device is one typed table of the driver's
// entries, filled by whoever executes them: the real driver (vendor), the PTX interpreter (cpu), the tables
// themselves (mock). An entry that the device does not have is null. Owned by the worker process, one a
// process, for its whole life; the entries may be called from any thread, with the driver's own rules on
// contexts and threads.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <string_view>

#include "api/cuda/driver_table.hh"
#include "base/result.hh"
#include "device/work_recorder.hh"

namespace outboard::device {

/// Takes a line that says why work of the program's failed, where the device knows more than its code; any
/// thread.
using failure_teller = std::function<void(std::string_view line)>;

class device {
 public:
  virtual ~device() = default;

  /// "vendor", "cpu", "mock".
  virtual std::string_view kind() const = 0;

  /// For `doctor`: what executes, with its version and, where it is a file, its resolved path.
  virtual std::string describe() const = 0;

  virtual const api::driver_table& cuda() const = 0;

  /// What tells a profiler of this device's work; nullptr: nothing can.
  virtual work_recorder* recorder() { return nullptr; }

  /// What must reach another process together with this handle, which is of an event of this one, so that it
  /// can be opened there: a descriptor, which the device keeps; -1: nothing.
  virtual int descriptor_behind(const CUipcEventHandle&) const { return -1; }
  /// The handle under which the other process opens it where that descriptor has come as number `descriptor`.
  virtual CUipcEventHandle with_descriptor(const CUipcEventHandle& handle, int) const { return handle; }
};

}  // namespace outboard::device
