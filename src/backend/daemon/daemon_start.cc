#include "backend/daemon/daemon_start.hh"

#include <errno.h>
#include <netinet/in.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/signalfd.h>
#include <sys/socket.h>

#include <algorithm>

#include "backend/daemon/device_shape.hh"
#include "backend/disk/image_cache.hh"
#include "base/errno_text.hh"
#include "base/log.hh"
#include "base/schemes.hh"

namespace outboard::backend {

void raise_descriptor_limit() {
  rlimit limit{};
  if (::getrlimit(RLIMIT_NOFILE, &limit) != 0) return;
  limit.rlim_cur = limit.rlim_max;
  ::setrlimit(RLIMIT_NOFILE, &limit);
}

result<unique_fd> take_signals() {
  sigset_t set;
  sigemptyset(&set);
  for (const int number : {SIGTERM, SIGINT, SIGHUP, SIGCHLD}) sigaddset(&set, number);
  CHECK(::sigprocmask(SIG_BLOCK, &set, nullptr) == 0);
  unique_fd fd(::signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK));
  if (!fd) return failure("signalfd: " + errno_text(errno));
  return fd;
}

result<passed_socket> inspect_passed_socket(int fd) {
  sockaddr_storage address{};
  socklen_t size = sizeof address;
  if (::getsockname(fd, reinterpret_cast<sockaddr*>(&address), &size) != 0) {
    return failure("descriptor " + std::to_string(fd) +
                   " that was passed is no socket: " + errno_text(errno));
  }
  if (address.ss_family == AF_UNIX)
    return passed_socket{scheme_with(&scheme_traits::has_socket_file).name, false};
  const std::string_view far = scheme_with(&scheme_traits::leaves_host).name;
  if (address.ss_family == AF_INET) {
    const auto& v4 = reinterpret_cast<const sockaddr_in&>(address);
    return passed_socket{far, (ntohl(v4.sin_addr.s_addr) >> 24) != 127};
  }
  if (address.ss_family == AF_INET6) {
    const auto& v6 = reinterpret_cast<const sockaddr_in6&>(address);
    return passed_socket{far, !IN6_IS_ADDR_LOOPBACK(&v6.sin6_addr)};
  }
  return failure("a socket was passed that no transport uses; known are " + url_forms());
}

std::string default_cache_directory(const variable_source& own, const std::string& name) {
  const auto absolute = [&](const char* variable) -> std::string {
    const char* value = own(variable);
    if (!value || value[0] != '/' || value[1] == '\0') return {};
    return std::string(value).substr(0, std::string_view(value).find(':'));
  };
  if (const std::string service = absolute("CACHE_DIRECTORY"); !service.empty()) return service + "/" + name;
  if (const std::string user = absolute("XDG_CACHE_HOME"); !user.empty()) return user + "/outboard/" + name;
  if (const std::string home = absolute("HOME"); !home.empty()) return home + "/.cache/outboard/" + name;
  return {};
}

namespace {

/// Whether clients may come that share no memory with us. Sockets that were passed may be of any kind.
bool clients_may_be_far(const daemon_settings& settings) {
  return settings.own_environment("LISTEN_FDS") || !std::ranges::all_of(settings.listen, stays_on_host);
}

}  // namespace

bool prepare_cache(daemon_settings& settings) {
  cache_settings& cache = settings.configuration.cache;
  if (!settings.configuration.module_cache || cache.size == 0 || !clients_may_be_far(settings)) return false;
  if (cache.directory.empty()) cache.directory = default_cache_directory(settings.own_environment, "modules");
  const auto opened = cache.directory.empty()
                          ? result<image_cache>(failure("no folder for it: set cache.directory"))
                          : image_cache::open(cache.directory, cache.size);
  if (!opened.ok()) {
    log::warn("no module cache: ", opened.error().message);
    return false;
  }
  log::debug("module cache: ", cache.directory, ", at most ", cache.size, " bytes");
  auto& arguments = settings.command.arguments;
  arguments.insert(arguments.end(),
                   {"--cache-directory", cache.directory, "--cache-size", std::to_string(cache.size)});
  return true;
}

status choose_visible(daemon_settings& settings, marshal::snapshot& snapshot) {
  const std::vector<std::string>& wanted = settings.configuration.shape.visible;
  if (wanted.empty()) return {};
  const std::vector<std::string> uuids = uuids_of(snapshot);
  const auto chosen = choose_devices(wanted, uuids);
  if (!chosen.ok()) return chosen.error();
  std::vector<marshal::device_facts> devices;
  std::string list;
  for (const std::size_t place : *chosen) {
    devices.push_back(std::move(snapshot.devices[place]));
    list.append(list.empty() ? "" : ",").append(uuids[place]);
  }
  snapshot.devices = std::move(devices);
  settings.own_environment = [own = std::move(settings.own_environment),
                              list = std::move(list)](const char* name) -> const char* {
    return std::string_view(name) == "CUDA_VISIBLE_DEVICES" ? list.c_str() : own(name);
  };
  return {};
}

void tell_of_limits_without_groups(const config& c, const group_choice& groups) {
  if (groups.own) return;
  for (const identity_settings& one : c.identities) {
    if (!one.host_memory && !one.cpu_weight) continue;
    log::warn(one.origin, ": host_memory and cpu_weight of [identity.", one.name,
              "] have no effect: ", groups.why_not.empty() ? "worker.cgroup is \"off\"" : groups.why_not);
  }
}

}  // namespace outboard::backend
