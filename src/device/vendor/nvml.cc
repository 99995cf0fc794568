#include "device/vendor/nvml.hh"

#include <dlfcn.h>

#include "device/vendor/vendor.hh"

namespace outboard::device::vendor {
namespace {

using namespace api::nvml;

class vendor_nvml final : public nvml_device {
 public:
  vendor_nvml(std::string path, void* library) : path_(std::move(path)) {
    for_each_entry(
        table_,
        [](void* context, std::string_view name, void** slot) { *slot = ::dlsym(context, name.data()); },
        library);
  }

  status start() {
    if (!table_.nvmlInit_v2) return failure(path_ + " has no nvmlInit_v2");
    const nvmlReturn_t code = table_.nvmlInit_v2();
    if (code == NVML_SUCCESS) return {};
    const char* text = table_.nvmlErrorString ? table_.nvmlErrorString(code) : "";
    return failure(path_ + ": nvmlInit: " + text + " (" + std::to_string(code) + ")");
  }

  std::string_view kind() const override { return "vendor"; }
  std::string describe() const override { return path_; }
  const function_table& nvml() const override { return table_; }
  nvmlReturn_t absent() const override { return NVML_ERROR_FUNCTION_NOT_FOUND; }

 private:
  std::string path_;
  function_table table_;
};

}  // namespace

result<std::unique_ptr<nvml_device>> open_nvml(const std::string& library) {
  std::vector<std::string> paths{library};
  if (library.empty()) {
    paths.clear();
    for (const std::string& driver : candidates())
      paths.push_back(driver.substr(0, driver.rfind('/') + 1) + "libnvidia-ml.so.1");
  }
  for (const std::string& path : paths) {
    void* opened = ::dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
    if (!opened) continue;
    if (::dlsym(opened, frontend_marker)) {
      ::dlclose(opened);
      continue;
    }
    auto device = std::make_unique<vendor_nvml>(path, opened);
    OUTBOARD_TRY(device->start());
    return std::unique_ptr<nvml_device>(std::move(device));
  }
  return failure("no libnvidia-ml.so.1 next to the driver");
}

}  // namespace outboard::device::vendor
