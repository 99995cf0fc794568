#include "tool/parts.hh"

#include <chrono>

#include "backend/opencl/session.hh"
#include "device/cpu/cpu.hh"
#include "device/cpu/nvml.hh"
#include "device/mock/mock.hh"
#include "device/mock/nvml.hh"
#include "device/opencl/opencl.hh"
#include "device/vendor/nvml.hh"
#include "device/vendor/vendor.hh"
#include "transport/list/list.hh"

namespace outboard::tool {
namespace {

/// A result of a part as a result of the contract.
template <class Part>
result<std::unique_ptr<device::device>> as_device(result<std::unique_ptr<Part>> part) {
  if (!part.ok()) return std::move(part).error();
  return std::unique_ptr<device::device>(std::move(*part));
}

device::cpu::options cpu_options(const cpu_settings& cpu) {
  device::cpu::options options;
  if (cpu.capability != 0) options.capability = static_cast<int>(cpu.capability);
  options.memory_bytes = cpu.memory;
  options.cores = cpu.cores;
  options.kernel_timeout = std::chrono::seconds(cpu.kernel_timeout_seconds);
  return options;
}

class opencl_worker final : public backend::worker_api {
 public:
  explicit opencl_worker(const api::opencl::function_table& functions) : functions_(functions) {}
  backend::session_maker speak(const wire::hello&, const backend::image_terms&) override {
    return [this](backend::session_core& core) {
      return std::make_unique<backend::opencl::session>(core, functions_);
    };
  }

 private:
  const api::opencl::function_table functions_;
};

}  // namespace

result<transport::registry> make_transports(const config& c) {
  transport::registry transports;
  OUTBOARD_TRY(transport::add_all(transports, c.plugins,
                                  {.silence = std::chrono::seconds(c.limits.keepalive_seconds)}));
  return transports;
}

result<std::unique_ptr<device::device>> open_device(device_choice kind, const cpu_settings& cpu,
                                                    device::failure_teller tell) {
  device::cpu::options how = cpu_options(cpu);
  how.tell = std::move(tell);
  switch (kind) {
    case device_choice::vendor:
      return as_device(device::vendor::open());
    case device_choice::mock:
      return as_device(device::mock::open());
    case device_choice::cpu:
      return as_device(device::cpu::open(how));
    case device_choice::automatic:
      break;
  }
  return failure("a worker is told its device by name");
}

result<std::unique_ptr<device::nvml_device>> open_nvml(device_choice kind, const cpu_settings& cpu,
                                                       device::activity_source workers) {
  switch (kind) {
    case device_choice::vendor:
      return device::vendor::open_nvml();
    case device_choice::mock:
      return device::mock::open_nvml();
    case device_choice::cpu:
      return device::cpu::open_nvml(cpu_options(cpu), std::move(workers));
    case device_choice::automatic:
      break;
  }
  return failure("the helper is told its device by name");
}

backend::api_opener opencl_of_host() {
  return [](backend::device_output*) -> result<std::unique_ptr<backend::worker_api>> {
    const auto table = device::opencl::open();
    if (!table.ok()) return table.error();
    return std::unique_ptr<backend::worker_api>(std::make_unique<opencl_worker>(*table));
  };
}

}  // namespace outboard::tool
