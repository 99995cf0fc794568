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

/// Programs, libraries, and what they need to know of the machine. Nothing here belongs to a person or a
/// service.
constexpr std::array<const char*, 28> for_all{
    "/usr", "/bin", "/sbin", "/lib", "/lib32", "/lib64", "/libx32", "/nix/store", "/gnu/store",
    "/etc/alternatives", "/etc/debian_version", "/etc/ld.so.cache", "/etc/ld.so.conf", "/etc/ld.so.conf.d",
    "/etc/locale.alias", "/etc/localtime", "/etc/os-release",
    // What /proc has of this process itself. Other processes have folders of their own there.
    "/proc/self", "/proc/cpuinfo", "/proc/filesystems", "/proc/meminfo", "/proc/stat", "/proc/version",
    "/proc/sys/kernel", "/proc/sys/vm", "/sys/devices/system", "/sys/fs/cgroup", "/sys/kernel/mm"};

/// What drivers need in addition.
constexpr std::array<const char*, 15> for_drivers{
    "/opt/amdgpu",        "/opt/amdgpu-pro", "/opt/intel",    "/opt/nvidia",  "/opt/rocm",
    "/run/opengl-driver", "/etc/nvidia",     "/proc/devices", "/proc/driver", "/proc/modules",
    "/sys/bus",           "/sys/class",      "/sys/dev",      "/sys/devices", "/sys/module"};

/// NVIDIA's driver (580) gives its threads names, by their files here, and does not start if it cannot.
constexpr const char* own_threads = "/proc/self/task";

constexpr std::array<const char*, 5> to_control{"/dev/full", "/dev/null", "/dev/random", "/dev/urandom",
                                                "/dev/zero"};
/// Graphics cards and AMD's GPUs.
constexpr std::array<const char*, 2> devices_of_platforms{"/dev/dri", "/dev/kfd"};
constexpr const char* device_of_wsl = "/dev/dxg";

constexpr const char* usual_vendors = "/etc/OpenCL/vendors";
constexpr const char* mps_folder = "CUDA_MPS_PIPE_DIRECTORY";

/// Adds a folder of libraries, but never the root, which would open everything.
void add_folder(std::vector<place>& places, const fs::path& folder) {
  if (folder.is_absolute() && folder.lexically_normal() != "/") places.push_back({folder.string()});
}

/// Adds the folder of a library and, if its name is a link, that of the link's target. The loader finds a
/// library without a folder by its own rules.
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

/// Adds what ocl-icd and Khronos's loader take: a folder of .icd files, one such file, or a library.
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

/// The folders in which the operator has the loader look for libraries.
void add_folders_of_the_loader(std::vector<place>& places) {
  std::error_code failed;
  for (const auto& entry : fs::directory_iterator("/etc/ld.so.conf.d", failed)) {
    if (entry.path().extension() != ".conf") continue;
    std::ifstream in(entry.path());
    for (std::string line; std::getline(in, line);) {
      if (line.starts_with('/')) add_folder(places, line.substr(0, line.find_last_not_of(" \t\r") + 1));
    }
  }
}

/// A client of MPS finds its server by pipes and sockets in a folder.
void add_mps(std::vector<place>& places, const std::function<const char*(const char*)>& variable) {
  if (uses_mps(variable)) places.push_back({variable(mps_folder), permission::change});
}

void add_platforms(std::vector<place>& places, const std::function<const char*(const char*)>& variable) {
  places.push_back({"/etc/OpenCL"});
  for (const char* path : devices_of_platforms) places.push_back({path, permission::device});
  const char* const vendors = variable("OCL_ICD_VENDORS");
  add_vendors(places, vendors && *vendors ? vendors : usual_vendors);
  for_each_in_list(variable("OCL_ICD_FILENAMES"),
                   [&](const fs::path& library) { add_library(places, library); });
}

}  // namespace

bool uses_mps(const std::function<const char*(const char*)>& variable) {
  const char* const folder = variable(mps_folder);
  return folder && folder[0] == '/' && fs::path(folder).lexically_normal() != "/";
}

std::vector<place> places_of(executor by, const std::function<const char*(const char*)>& variable) {
  std::vector<place> places;
  if (by == executor::gate)
    return {{"/etc/localtime"}, {"/usr/share/zoneinfo"}, {"/dev/null", permission::device}};
  for (const char* path : for_all) places.push_back({path});
  for (const char* path : to_control) places.push_back({path, permission::device});
  for_each_in_list(variable("LD_LIBRARY_PATH"), [&](const fs::path& folder) { add_folder(places, folder); });
  if (by == executor::interpreter) {
    places.push_back({"/etc/machine-id"});  // its device's UUID follows from it
    return places;
  }
  for (const char* path : for_drivers) places.push_back({path});
  places.push_back({own_threads, permission::rewrite});
  add_devices_of_nvidia(places);
  places.push_back({device_of_wsl, permission::device});
  add_folders_of_the_loader(places);
  if (by == executor::platforms) add_platforms(places, variable);
  if (by == executor::driver) {
    // NVIDIA's driver shares the state of interprocess events, and that of MPS, by names there.
    places.push_back({"/dev/shm", permission::change});
    add_mps(places, variable);
  }
  return places;
}

}  // namespace outboard::backend
