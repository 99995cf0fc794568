#include "transport/tcp/address.hh"

#include <netdb.h>
#include <netinet/in.h>

#include <cerrno>
#include <cstring>
#include <memory>

#include "base/errno_text.hh"
#include "transport/url.hh"

namespace outboard::transport {

namespace {

error resolve_error(const host_port& where, int code, int system_code) {
  std::string host = "'" + printable(where.host) + "'";
  switch (code) {
    case EAI_NONAME:
    case EAI_NODATA:
    case EAI_FAIL:
      return failure("unknown host " + host);
    case EAI_AGAIN:
      return {action::retry, "no name server answered for host " + host};
    case EAI_SYSTEM:
      return failure("cannot look up host " + host + ": " + errno_text(system_code));
    default:
      return failure("cannot look up host " + host + ": " + gai_strerror(code));
  }
}

using get_address = int (*)(int, sockaddr*, socklen_t*);

result<socket_address> address_by(get_address get, int fd) {
  socket_address a;
  a.size = sizeof a.storage;
  if (get(fd, reinterpret_cast<sockaddr*>(&a.storage), &a.size) != 0)
    return failure("descriptor " + std::to_string(fd) + ": " + errno_text(errno));
  return a;
}

}  // namespace

bool socket_address::is_loopback() const {
  if (storage.ss_family == AF_INET) {
    const auto& v4 = reinterpret_cast<const sockaddr_in&>(storage);
    return (ntohl(v4.sin_addr.s_addr) >> 24) == 127;
  }
  if (storage.ss_family == AF_INET6) {
    const auto& v6 = reinterpret_cast<const sockaddr_in6&>(storage).sin6_addr;
    return IN6_IS_ADDR_LOOPBACK(&v6) || (IN6_IS_ADDR_V4MAPPED(&v6) && v6.s6_addr[12] == 127);
  }
  return false;
}

std::string socket_address::text() const {
  char host[NI_MAXHOST], port[NI_MAXSERV];
  if (getnameinfo(get(), size, host, sizeof host, port, sizeof port, NI_NUMERICHOST | NI_NUMERICSERV) != 0)
    return "?";
  bool v6 = storage.ss_family == AF_INET6;
  return (v6 ? "[" + std::string(host) + "]" : host) + ":" + port;
}

result<socket_address> local_address(int fd) {
  return address_by([](int s, sockaddr* a, socklen_t* n) { return ::getsockname(s, a, n); }, fd);
}

result<socket_address> remote_address(int fd) {
  return address_by([](int s, sockaddr* a, socklen_t* n) { return ::getpeername(s, a, n); }, fd);
}

result<std::vector<socket_address>> resolve(std::string_view host_and_port) {
  result<host_port> where = parse_host_port(host_and_port);
  if (!where) return std::move(where).error();
  addrinfo hints{};
  hints.ai_family = AF_UNSPEC;
  hints.ai_socktype = SOCK_STREAM;
  hints.ai_flags = AI_NUMERICSERV;
  addrinfo* list = nullptr;
  int code = getaddrinfo(where->host.c_str(), std::to_string(where->port).c_str(), &hints, &list);
  if (code != 0) return resolve_error(*where, code, errno);
  std::unique_ptr<addrinfo, void (*)(addrinfo*)> owner(list, freeaddrinfo);
  std::vector<socket_address> all;
  for (const addrinfo* one = list; one != nullptr; one = one->ai_next) {
    if (one->ai_addrlen > sizeof(sockaddr_storage)) continue;
    socket_address a;
    std::memcpy(&a.storage, one->ai_addr, one->ai_addrlen);
    a.size = one->ai_addrlen;
    all.push_back(a);
  }
  if (all.empty()) return failure("host '" + printable(where->host) + "' has no address that TCP can use");
  return all;
}

}  // namespace outboard::transport
