// Makes the transports and devices of this program. Used by every verb; main thread.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "backend/worker/worker_api.hh"
#include "base/configuration/config.hh"
#include "device/device.hh"
#include "device/nvml.hh"
#include "transport/transport.hh"

namespace outboard::tool {

/// Those of base/schemes.def, and the plug-ins of the configuration.
result<transport::registry> make_transports(const config& c);

/// "vendor", "cpu" or "mock". `tell` gets what it says of work that failed; empty: the log.
result<std::unique_ptr<device::device>> open_device(device_choice kind, const cpu_settings& cpu,
                                                    device::failure_teller tell = {});

/// What answers NVML for it.
result<std::unique_ptr<device::nvml_device>> open_nvml(device_choice kind, const cpu_settings& cpu,
                                                       device::activity_source workers);

/// The OpenCL of this host, for a worker.
backend::api_opener opencl_of_host();

}  // namespace outboard::tool
