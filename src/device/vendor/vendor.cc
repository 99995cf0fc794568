#include "device/vendor/vendor.hh"

#include <dlfcn.h>

#include <filesystem>
#include <string_view>
#include <unordered_map>

#include "device/vendor/cupti.hh"
#include "device/vendor/elf_symbols.hh"
#include "device/vendor/library_search.hh"
#include "device/vendor/reservations.hh"

namespace outboard::device::vendor {
namespace {

constexpr const char* soname = "libcuda.so.1";
// Debian and Ubuntu, Fedora and SUSE, WSL, NVIDIA's container runtimes (old and GKE's), NixOS, Jetson.
constexpr const char* known_folders[] = {
    "/usr/lib/x86_64-linux-gnu",
    "/usr/lib/aarch64-linux-gnu",
    "/usr/lib64",
    "/usr/lib",
    "/usr/lib/wsl/lib",
    "/usr/local/nvidia/lib64",
    "/usr/local/nvidia/lib",
    "/run/opengl-driver/lib",
    "/usr/lib/x86_64-linux-gnu/nvidia/current",
    "/usr/lib/aarch64-linux-gnu/tegra",
};

/// Under which name, version and flags cuGetProcAddress gives a symbol.
struct question {
  const char* name;
  int version;
  cuuint64_t flags;
};

cuuint64_t stream_flags(std::string_view variant) {
  return variant.empty() ? CU_GET_PROC_ADDRESS_LEGACY_STREAM : CU_GET_PROC_ADDRESS_PER_THREAD_DEFAULT_STREAM;
}

const std::unordered_map<std::string_view, question>& questions() {
  static const std::unordered_map<std::string_view, question> all{
#define SINCE_ELSEWHERE SINCE
#define SINCE(name, suffix, variant, version) \
  {#name #suffix #variant, {#name, version, stream_flags(#variant)}},
#include "api/cuda/proc_versions.def"
#undef SINCE
#undef SINCE_ELSEWHERE
  };
  return all;
}

class driver final : public device {
 public:
  driver(std::string path, const api::driver_table& table)
      : path_(std::move(path)), table_(table), recorder_(make_cupti_recorder()) {
    if (table_.cuDriverGetVersion != nullptr) table_.cuDriverGetVersion(&version_);
  }

  std::string_view kind() const override { return "vendor"; }
  std::string describe() const override {
    return path_ + ", CUDA " + std::to_string(version_ / 1000) + "." + std::to_string(version_ % 1000 / 10);
  }
  const api::driver_table& cuda() const override { return table_; }
  work_recorder* recorder() override { return recorder_.get(); }

 private:
  std::string path_;
  api::driver_table table_;
  std::unique_ptr<work_recorder> recorder_;
  int version_ = 0;
};

api::driver_table fill(void* library) {
  // Before 12.0 there is only the four-argument form, before 11.3 none: then the exported symbols are all
  // there is. Their names say the ABI exactly, so they also cover what the older question cannot tell apart.
  const auto ask_v2 =
      reinterpret_cast<decltype(&::cuGetProcAddress_v2)>(::dlsym(library, "cuGetProcAddress_v2"));
  const auto ask_v1 = reinterpret_cast<decltype(&::cuGetProcAddress)>(::dlsym(library, "cuGetProcAddress"));
  api::driver_table table;
  api::for_each_entry(table, [&](std::string_view name, void** slot) {
    const auto known = questions().find(name);
    if (known != questions().end()) {
      const auto& [base, version, flags] = known->second;
      CUdriverProcAddressQueryResult found = CU_GET_PROC_ADDRESS_SYMBOL_NOT_FOUND;
      if (ask_v2 != nullptr) {
        if (ask_v2(base, slot, version, flags, &found) != CUDA_SUCCESS) *slot = nullptr;
      } else if (ask_v1 != nullptr) {
        if (ask_v1(base, slot, version, flags) != CUDA_SUCCESS) *slot = nullptr;
      }
    }
    if (*slot == nullptr) *slot = ::dlsym(library, name.data());
  });
  return table;
}

error refuse(const std::string& path) {
  return failure(path + " is Outboard's own front-end library, not a driver");
}

result<std::unique_ptr<device>> open_path(const std::string& path) {
  auto looked = elf_exports(path, frontend_marker);
  if (!looked) return looked.error();
  if (*looked == elf_answer::foreign) return failure(path + " is for another architecture");
  if (*looked == elf_answer::exports) return refuse(path);
  void* library = ::dlopen(path.c_str(), RTLD_LAZY | RTLD_LOCAL);
  if (library == nullptr) return failure(std::string("cannot load ") + ::dlerror());
  // A stripped section table hides the symbol from the look above, not from the loader.
  if (::dlsym(library, frontend_marker) != nullptr) {
    ::dlclose(library);
    return refuse(path);
  }
  const api::driver_table table = fill(library);
  if (table.cuInit == nullptr) {
    ::dlclose(library);
    return failure(path + " has no cuInit: not a CUDA driver");
  }
  detail::reserve_for(reinterpret_cast<const void*>(table.cuInit));
  return std::unique_ptr<device>(std::make_unique<driver>(path, table));
}

}  // namespace

std::vector<std::string> candidates() { return find_library(soname, known_folders); }

result<std::unique_ptr<device>> open(const options& how) {
  if (!how.library.empty()) {
    std::error_code failed;
    const auto real = std::filesystem::canonical(how.library, failed);
    if (failed) return failure(how.library + ": " + failed.message());
    return open_path(real.string());
  }
  std::string reasons;
  for (const std::string& path : candidates()) {
    auto opened = open_path(path);
    if (opened) return opened;
    reasons += "; " + opened.error().message;
  }
  if (reasons.empty()) reasons = "; looked in LD_LIBRARY_PATH, the loader's cache and the usual folders";
  return failure("no NVIDIA driver library (libcuda.so.1) on this machine" + reasons);
}

}  // namespace outboard::device::vendor
