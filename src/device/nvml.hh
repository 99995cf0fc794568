// The contract of a device that answers NVML: one typed table of its functions, like the driver's in
// device.hh. Owned by the daemon's helper process that serves all clients; the entries may be called from any
// thread. A missing entry is null.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "api/nvml/table.hh"

namespace outboard::device {

class nvml_device {
 public:
  virtual ~nvml_device() = default;

  /// "vendor", "cpu", "mock".
  virtual std::string_view kind() const = 0;
  /// For logs: the library or device that answers, with its version and, if it is a file, its resolved path.
  virtual std::string describe() const = 0;

  /// nvmlInit has been called.
  virtual const api::nvml::function_table& nvml() const = 0;
  /// The result code for a function that is missing.
  virtual api::nvml::nvmlReturn_t absent() const = 0;
};

/// What a worker process does on a device that has no driver to ask (cpu).
struct worker_activity {
  pid_t worker = -1;
  std::uint64_t device_bytes = 0;
};
using activity_source = std::function<std::vector<worker_activity>()>;

}  // namespace outboard::device
