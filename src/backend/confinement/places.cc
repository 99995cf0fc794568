#include "backend/confinement/places.hh"

#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cctype>
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

/// How the names of NVIDIA's devices begin; /dev/nvme0 is none of them.
constexpr std::array<std::string_view, 1> devices_of_boards{"nvidia"};
/// On machines where the GPU is part of the processor, and under Windows.
constexpr std::array<std::string_view, 5> other_devices{"dxg", "nvgpu", "nvhost", "nvmap", "nvsciipc"};

/// What the driver and its tools read beside what OpenCL's do.
constexpr std::array<const char*, 13> cuda_reads{"/opt/cuda",
                                                 "/run/nvidia",
                                                 "/run/nvidia-persistenced",
                                                 "/etc/nvidia-container-runtime",
                                                 "/proc/cmdline",
                                                 "/proc/interrupts",
                                                 "/proc/loadavg",
                                                 "/proc/misc",
                                                 "/proc/sys/fs",
                                                 "/proc/uptime",
                                                 "/proc/vmstat",
                                                 "/sys/firmware/devicetree",
                                                 "/sys/kernel/iommu_groups"};

/// Folders of the toolkit in which CUPTI is looked for.
constexpr std::array<const char*, 3> toolkits{"/usr/local/cuda", "/usr/local/cuda/lib64",
                                              "/usr/local/cuda/extras/CUPTI/lib64"};

constexpr const char* usual_mps = "/tmp/nvidia-mps";

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

template <std::size_t Count>
void add_devices(std::vector<place>& places, const std::array<std::string_view, Count>& beginnings) {
  std::error_code failed;
  for (const auto& entry : fs::directory_iterator("/dev", failed)) {
    const std::string name = entry.path().filename().string();
    if (std::ranges::any_of(beginnings, [&](std::string_view one) { return name.starts_with(one); }))
      places.push_back({entry.path().string(), permission::device});
  }
}

/// A folder, and the one that it is where its name or a part of it is a link (/usr/local/cuda).
void add_real_folder(std::vector<place>& places, const fs::path& folder) {
  std::error_code failed;
  add_folder(places, folder);
  if (const fs::path real = fs::canonical(folder, failed); !failed) add_folder(places, real);
}

/// Those that the loader's configuration names.
void add_folders_of_loader(std::vector<place>& places) {
  std::error_code failed;
  std::vector<fs::path> files{"/etc/ld.so.conf"};
  for (const auto& entry : fs::directory_iterator("/etc/ld.so.conf.d", failed)) files.push_back(entry.path());
  for (const fs::path& file : files) {
    std::ifstream in(file);
    for (std::string line; std::getline(in, line);) {
      while (!line.empty() && std::isspace(static_cast<unsigned char>(line.back()))) line.pop_back();
      if (line.starts_with('/')) add_real_folder(places, line);
    }
  }
}

/// Where NVIDIA's libraries are and what they look at, whichever of them it is.
void add_what_is_nvidias(std::vector<place>& places) {
  for (const char* path : cuda_reads) places.push_back({path});
  for (const char* path : toolkits) add_real_folder(places, path);
  add_folders_of_loader(places);
  add_devices(places, other_devices);
  // Names of its threads, and files of its own that have no name any more.
  places.push_back({"/proc/self", permission::device});
}

}  // namespace

std::vector<place> places_of_drivers(const std::function<const char*(const char*)>& variable) {
  std::vector<place> places;
  for (const char* path : to_read) places.push_back({path});
  for (const char* path : to_control) places.push_back({path, permission::device});
  add_devices(places, devices_of_boards);
  const char* const vendors = variable("OCL_ICD_VENDORS");
  add_vendors(places, vendors && *vendors ? vendors : usual_vendors);
  for_each_in_list(variable("OCL_ICD_FILENAMES"),
                   [&](const fs::path& library) { add_library(places, library); });
  for_each_in_list(variable("LD_LIBRARY_PATH"), [&](const fs::path& folder) { add_folder(places, folder); });
  return places;
}

std::string folder_of_mps(const std::function<const char*(const char*)>& variable) {
  const char* const named = variable("CUDA_MPS_PIPE_DIRECTORY");
  if (named && *named) {
    std::error_code failed;
    return *named == '/' && fs::is_directory(named, failed) ? named : "";
  }
  // Anybody may make folders in /tmp.
  struct stat about {};
  const bool there = ::lstat(usual_mps, &about) == 0 && S_ISDIR(about.st_mode);
  return there && (about.st_uid == 0 || about.st_uid == ::geteuid()) ? usual_mps : "";
}

std::vector<place> places_of_cuda(const std::function<const char*(const char*)>& variable) {
  std::vector<place> places;
  add_what_is_nvidias(places);
  // By these names processes share events.
  places.push_back({"/dev/shm", permission::change});
  if (const std::string mps = folder_of_mps(variable); !mps.empty()) {
    places.push_back({mps, permission::meet});
    if (const char* const log = variable("CUDA_MPS_LOG_DIRECTORY"); log && *log == '/')
      places.push_back({log, permission::change});
  }
  return places;
}

std::vector<place> places_of_nvml(const std::function<const char*(const char*)>& variable) {
  std::vector<place> places = places_of_drivers(variable);
  add_what_is_nvidias(places);
  return places;
}

std::vector<place> places_of_the_gate() {
  return {{"/etc/localtime"}, {"/usr/share/zoneinfo"}, {"/dev/null", permission::device}};
}

}  // namespace outboard::backend
