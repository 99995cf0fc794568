#include "backend/daemon/notify.hh"

#include <fcntl.h>
#include <sys/socket.h>
#include <sys/un.h>

#include <charconv>
#include <cstddef>
#include <cstdlib>
#include <cstring>

namespace outboard::backend {
namespace {

long number_in(const char* variable) {
  const char* text = std::getenv(variable);
  long number = -1;
  if (text) std::from_chars(text, text + std::strlen(text), number);
  return number;
}

}  // namespace

void notify_manager(const std::string& message) {
  const char* path = std::getenv("NOTIFY_SOCKET");
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  if (!path || (path[0] != '/' && path[0] != '@') || std::strlen(path) >= sizeof address.sun_path) return;
  std::memcpy(address.sun_path, path, std::strlen(path));
  if (path[0] == '@') address.sun_path[0] = '\0';  // abstract name
  const auto size = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + std::strlen(path));
  const unique_fd fd(::socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0));
  if (!fd) return;
  (void)::sendto(fd.get(), message.data(), message.size(), MSG_NOSIGNAL,
                 reinterpret_cast<const sockaddr*>(&address), size);
}

std::vector<unique_fd> take_passed_sockets() {
  constexpr int first = 3;  // sd_listen_fds(3)
  std::vector<unique_fd> sockets;
  if (number_in("LISTEN_PID") == ::getpid()) {
    const long count = number_in("LISTEN_FDS");
    for (int fd = first; fd < first + count && fd < first + 64; ++fd) {
      if (::fcntl(fd, F_SETFD, FD_CLOEXEC) == 0) sockets.emplace_back(fd);
    }
  }
  for (const char* variable : {"LISTEN_PID", "LISTEN_FDS", "LISTEN_FDNAMES"}) ::unsetenv(variable);
  return sockets;
}

}  // namespace outboard::backend
