// The contract of a device: it executes calls of the driver API. A device is one typed table of the driver's
// entries, filled by what executes them: the real driver (vendor), the PTX interpreter (cpu), or code made
// from the tables (mock). An entry that the device does not have is null. A worker process owns one device
// for its whole life; the entries may be called from any thread, under the driver's own rules for contexts
// and threads.
#pragma once

#include <memory>
#include <string>
#include <string_view>

#include "api/cuda/driver_table.hh"
#include "base/result.hh"

namespace outboard::device {

class device {
 public:
  virtual ~device() = default;

  /// "vendor", "cpu", "mock".
  virtual std::string_view kind() const = 0;

  /// For `doctor`: what executes, with its version and, where it is a file, its resolved path.
  virtual std::string describe() const = 0;

  virtual const api::driver_table& cuda() const = 0;

  /// The descriptor of this process without which no other opens this handle of an event; -1: it needs none.
  virtual int descriptor_of(const CUipcEventHandle&) const { return -1; }
  /// The handle by which this process opens such an event of another process, once it has its descriptor.
  virtual CUipcEventHandle with_descriptor(const CUipcEventHandle& handle, int) const { return handle; }
};

}  // namespace outboard::device
