#include "tool/locate.hh"

#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstring>

#include "base/errno_text.hh"
#include "base/schemes.hh"

namespace outboard::tool {
namespace {

constexpr const char* system_socket = "unix:/run/outboard/outboard.sock";

std::string parent(const std::string& path) { return path.substr(0, path.rfind('/')); }

std::string resolved(const std::string& path) {
  std::array<char, PATH_MAX> buffer;
  return ::realpath(path.c_str(), buffer.data()) ? buffer.data() : path;
}

}  // namespace

std::string own_path() { return resolved("/proc/self/exe"); }

std::string library_folder() { return resolved(fmt::format("{}/lib/outboard", parent(parent(own_path())))); }

result<std::string> find_library_folder(const std::string& chosen) {
  const std::string folder = chosen.empty() ? library_folder() : resolved(chosen);
  if (::access(fmt::format("{}/libcuda.so.1", folder).c_str(), R_OK) == 0) return folder;
  return failure(
      fmt::format("the client library is missing: there is no libcuda.so.1 in {}; install Outboard, or "
                  "name its folder with --library FOLDER",
                  folder));
}

std::string default_socket() {
  // systemd gives a list if several folders are configured. Our unit has one.
  const char* service = ::getenv("RUNTIME_DIRECTORY");
  if (service && service[0] == '/' && !std::strchr(service, ':'))
    return fmt::format("unix:{}/outboard.sock", service);
  if (::geteuid() == 0) return system_socket;
  const char* run = ::getenv("XDG_RUNTIME_DIR");
  if (run && run[0] == '/') return fmt::format("unix:{}/outboard/outboard.sock", run);
  return fmt::format("unix:/tmp/outboard-{}/outboard.sock", ::geteuid());
}

std::vector<std::string> usual_sockets() {
  std::vector<std::string> list{default_socket()};
  if (list.front() != system_socket) list.emplace_back(system_socket);
  return list;
}

std::vector<std::string> sockets_there() {
  std::vector<std::string> list = usual_sockets();
  std::erase_if(
      list, [](const std::string& url) { return ::access(std::string(address_of(url)).c_str(), F_OK) != 0; });
  return list;
}

status prepare_default_socket(const std::string& url) {
  if (url != default_socket()) return {};
  const std::string folder = parent(url.substr(5));
  const bool of_system = folder.starts_with("/run/outboard");
  if (::mkdir(folder.c_str(), of_system ? 0755 : 0700) == 0) return {};
  if (errno != EEXIST) return failure(fmt::format("cannot make {}: {}", folder, errno_text(errno)));
  struct stat about {};
  // In /tmp, another user may have made it first.
  if (::lstat(folder.c_str(), &about) != 0 || !S_ISDIR(about.st_mode) || about.st_uid != ::geteuid()) {
    return failure(fmt::format("{} is not a folder of this user's; remove it or give --listen URL", folder));
  }
  return {};
}

}  // namespace outboard::tool
