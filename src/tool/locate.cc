#include "tool/locate.hh"

#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <cstring>

#include "base/errno_text.hh"
#include "base/schemes.hh"

namespace outboard::tool {
namespace {

constexpr const char* system_endpoint = "unix:/run/outboard/outboard.sock";

std::string parent(const std::string& path) { return path.substr(0, path.rfind('/')); }

std::string resolved(const std::string& path) {
  std::array<char, PATH_MAX> buffer;
  return ::realpath(path.c_str(), buffer.data()) ? buffer.data() : path;
}

}  // namespace

std::string own_path() { return resolved("/proc/self/exe"); }

std::string library_folder() { return resolved(parent(parent(own_path())) + "/lib/outboard"); }

result<std::string> find_library_folder(const std::string& chosen) {
  const std::string folder = chosen.empty() ? library_folder() : resolved(chosen);
  if (::access((folder + "/libcuda.so.1").c_str(), R_OK) == 0) return folder;
  return failure("no front-end library: there is no libcuda.so.1 in " + folder +
                 "; install Outboard or name the folder with --library");
}

std::string default_endpoint() {
  // systemd gives a list where several folders are configured; ours is one.
  const char* service = ::getenv("RUNTIME_DIRECTORY");
  if (service && service[0] == '/' && !std::strchr(service, ':'))
    return std::string("unix:") + service + "/outboard.sock";
  if (::geteuid() == 0) return system_endpoint;
  const char* run = ::getenv("XDG_RUNTIME_DIR");
  if (run && run[0] == '/') return std::string("unix:") + run + "/outboard/outboard.sock";
  return "unix:/tmp/outboard-" + std::to_string(::geteuid()) + "/outboard.sock";
}

std::vector<std::string> usual_endpoints() {
  std::vector<std::string> list{default_endpoint()};
  if (list.front() != system_endpoint) list.emplace_back(system_endpoint);
  return list;
}

status prepare_default_endpoint(const std::string& url) {
  if (url != default_endpoint()) return {};
  const std::string folder = parent(std::string(address_of(url)));
  const bool of_system = folder.starts_with("/run/outboard");
  if (::mkdir(folder.c_str(), of_system ? 0755 : 0700) == 0) return {};
  if (errno != EEXIST) return failure("cannot make " + folder + ": " + errno_text(errno));
  struct stat about {};
  // In /tmp anybody may have made it first.
  if (::lstat(folder.c_str(), &about) != 0 || !S_ISDIR(about.st_mode) || about.st_uid != ::geteuid()) {
    return failure(folder + " is not a folder of ours; remove it or give --listen URL");
  }
  return {};
}

}  // namespace outboard::tool
