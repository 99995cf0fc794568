// Names to socket addresses and back. Any thread.
#pragma once

#include <sys/socket.h>

#include <string>
#include <string_view>
#include <vector>

#include "base/result.hh"

namespace outboard::transport {

struct socket_address {
  sockaddr_storage storage{};
  socklen_t size = 0;

  const sockaddr* get() const { return reinterpret_cast<const sockaddr*>(&storage); }
  bool is_loopback() const;
  std::string text() const;  ///< "1.2.3.4:5", "[::1]:5"
  bool operator==(const socket_address& other) const { return text() == other.text(); }
};

/// The address to which `fd` is bound, and the one to which it is connected.
result<socket_address> local_address(int fd);
result<socket_address> remote_address(int fd);

/// All addresses of "host:port", best first. Numeric addresses are used directly; names ask the resolver,
/// which has its own time limits (resolv.conf: 10 s and more when no name server answers).
result<std::vector<socket_address>> resolve(std::string_view host_and_port);

}  // namespace outboard::transport
