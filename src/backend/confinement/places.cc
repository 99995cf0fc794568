#include "backend/confinement/places.hh"

#include <algorithm>
#include <array>
#include <filesystem>
#include <fstream>
#include <optional>
#include <string_view>

namespace outboard::backend {
namespace {

namespace fs = std::filesystem;

/// Programs, libraries, and what they look at of the machine; nothing that belongs to a person or a service.
constexpr std::array<const char*, 42> to_read{
    "/usr", "/bin", "/sbin", "/lib", "/lib32", "/lib64", "/libx32", "/opt/amdgpu", "/opt/amdgpu-pro",
    "/opt/intel", "/opt/nvidia", "/opt/rocm", "/nix/store", "/gnu/store", "/etc/OpenCL", "/etc/alternatives",
    "/etc/debian_version", "/etc/ld.so.cache", "/etc/ld.so.conf", "/etc/ld.so.conf.d", "/etc/locale.alias",
    "/etc/localtime", "/etc/nvidia", "/etc/os-release",
    // What this process itself may read of /proc; other processes have folders of their own there.
    "/proc/self", "/proc/cpuinfo", "/proc/devices", "/proc/driver", "/proc/filesystems", "/proc/meminfo",
    "/proc/modules", "/proc/stat", "/proc/version", "/proc/sys/kernel", "/proc/sys/vm", "/sys/bus",
    "/sys/class", "/sys/dev", "/sys/devices", "/sys/fs/cgroup", "/sys/kernel/mm", "/sys/module"};

constexpr std::array<const char*, 7> to_control{"/dev/dri",    "/dev/full",    "/dev/kfd", "/dev/null",
                                                "/dev/random", "/dev/urandom", "/dev/zero"};

constexpr const char* usual_vendors = "/etc/OpenCL/vendors";

/// A folder of libraries; never the root, by which everything would be open.
void add_folder(std::vector<place>& places, const fs::path& folder) {
  if (folder.is_absolute() && folder.lexically_normal() != "/") places.push_back({folder.string()});
}

/// A library and those that lie beside it, also where the name is a link. One without a folder is found by
/// the loader's own rules.
void add_library(std::vector<place>& places, const fs::path& library) {
  if (!library.is_absolute()) return;
  std::error_code failed;
  add_folder(places, library.parent_path());
  const fs::path real = fs::canonical(library, failed);
  if (!failed) add_folder(places, real.parent_path());
}

void add_icd(std::vector<place>& places, const fs::path& file) {
  places.push_back({file.string()});
  std::ifstream in(file);
  std::string library;
  std::getline(in, library);
  add_library(places, library);
}

/// What ocl-icd and Khronos's loader take: a folder of .icd files, one such file, or a library.
void add_vendors(std::vector<place>& places, const fs::path& from) {
  std::error_code failed;
  if (!fs::is_directory(from, failed))
    return from.extension() == ".icd" ? add_icd(places, from) : add_library(places, from);
  add_folder(places, from);
  for (const auto& entry : fs::directory_iterator(from, failed)) {
    if (entry.path().extension() == ".icd") add_icd(places, entry.path());
  }
}

template <class Each>
void for_each_in_list(const char* list, Each each) {
  for (std::string_view rest = list ? list : ""; !rest.empty();) {
    const std::size_t colon = rest.find(':');
    each(fs::path(rest.substr(0, colon)));
    rest.remove_prefix(colon == rest.npos ? rest.size() : colon + 1);
  }
}

void add_devices_of_nvidia(std::vector<place>& places) {
  std::error_code failed;
  for (const auto& entry : fs::directory_iterator("/dev", failed)) {
    if (entry.path().filename().string().starts_with("nvidia"))
      places.push_back({entry.path().string(), permission::device});
  }
}

}  // namespace

std::vector<place> places_of_drivers(const std::function<const char*(const char*)>& variable) {
  std::vector<place> places;
  for (const char* path : to_read) places.push_back({path});
  for (const char* path : to_control) places.push_back({path, permission::device});
  add_devices_of_nvidia(places);
  const char* const vendors = variable("OCL_ICD_VENDORS");
  add_vendors(places, vendors && *vendors ? vendors : usual_vendors);
  for_each_in_list(variable("OCL_ICD_FILENAMES"),
                   [&](const fs::path& library) { add_library(places, library); });
  for_each_in_list(variable("LD_LIBRARY_PATH"), [&](const fs::path& folder) { add_folder(places, folder); });
  return places;
}

std::vector<place> places_of_the_gate() {
  return {{"/etc/localtime"}, {"/usr/share/zoneinfo"}, {"/dev/null", permission::device}};
}

}  // namespace outboard::backend
