"""The device `example`: the cpu device under a name of its own."""
TARGETS = ["base_test", "outboard_shim_cuda"]

HEADER = """// The cpu device under a name of its own. As the cpu device, owned by the worker.
#pragma once

#include <memory>

#include "base/result.hh"
#include "device/device.hh"

namespace outboard::device::example {

result<std::unique_ptr<device>> open();

}  // namespace outboard::device::example
"""
SOURCE = """#include "device/example/example.hh"

#include <cstdio>
#include <utility>

#include "device/cpu/cpu.hh"

namespace outboard::device::example {
namespace {

CUresult name_of(char* name, int size, CUdevice) {
  std::snprintf(name, static_cast<std::size_t>(size), "Example");
  return CUDA_SUCCESS;
}

class renamed final : public device {
 public:
  explicit renamed(std::unique_ptr<device> inner) : inner_(std::move(inner)), table_(inner_->cuda()) {
    table_.cuDeviceGetName = name_of;
  }
  std::string_view kind() const override { return "example"; }
  std::string describe() const override { return "an example: " + inner_->describe(); }
  const api::driver_table& cuda() const override { return table_; }

 private:
  std::unique_ptr<device> inner_;
  api::driver_table table_;
};

}  // namespace

result<std::unique_ptr<device>> open() {
  auto inner = cpu::open();
  if (!inner.ok()) return std::move(inner).error();
  return std::unique_ptr<device>(std::make_unique<renamed>(std::move(*inner)));
}

}  // namespace outboard::device::example
"""


def apply(copy):
    copy.add("src/device/example/CMakeLists.txt", """\
# Holds: the device example. May use: device (contract), device/cpu.
outboard_library(device/example USES device device/cpu)
""")
    copy.add("src/device/example/example.hh", HEADER)
    copy.add("src/device/example/example.cc", SOURCE)
    copy.append("src/device/CMakeLists.txt", "add_subdirectory(example)\n")
    copy.replace("src/base/configuration/config.hh", "vendor, cpu, mock };", "vendor, cpu, mock, example };")
    copy.replace("src/base/configuration/config.cc",
                 'std::array<std::string_view, 4> device_names{"auto", "vendor", "cpu", "mock"}',
                 'std::array<std::string_view, 5> device_names{"auto", "vendor", "cpu", "mock", "example"}')
    copy.replace("src/base/configuration/settings.cc", '"auto, vendor, cpu"', '"auto, vendor, cpu, example"')
    copy.replace("src/base/configuration/config_test.cc", 'accepted: auto, vendor, cpu")',
                 'accepted: auto, vendor, cpu, example")')
    copy.after("src/tool/parts.cc", '#include "device/cpu/nvml.hh"', '#include "device/example/example.hh"\n')
    copy.after("src/tool/parts.cc", "return as_device(device::mock::open());",
               "    case device_choice::example:\n      return device::example::open();\n")
    copy.after("src/tool/parts.cc", "return device::mock::open_nvml();", """\
    case device_choice::example:
      return device::cpu::open_nvml(cpu_options(cpu), std::move(workers));
""")
    copy.replace("src/tool/CMakeLists.txt", "outboard_device_cpu\n", "outboard_device_cpu outboard_device_example\n")


def check(shop):
    shop.cuda("""
name = create_string_buffer(40)
ok(cuda.cuDeviceGetName(name, 40, 0))
assert name.value == b"Example", name.value
""", device="example")
    shop.unit_tests("base_test", "*")
    shop.python("tests/tool/errors_test.py")
    shop.house("include_rules")
