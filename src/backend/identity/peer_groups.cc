#include "backend/identity/peer_groups.hh"

#include <errno.h>
#include <sys/socket.h>

namespace outboard::backend {

std::vector<std::uint32_t> peer_groups(int socket) {
  ucred peer{};
  socklen_t size = sizeof peer;
  if (::getsockopt(socket, SOL_SOCKET, SO_PEERCRED, &peer, &size) != 0 || peer.pid == 0) return {};
  std::vector<gid_t> groups(32);
  while (true) {
    size = static_cast<socklen_t>(groups.size() * sizeof(gid_t));
    if (::getsockopt(socket, SOL_SOCKET, SO_PEERGROUPS, groups.data(), &size) == 0) break;
    // With ERANGE the kernel says how much room it needs.
    if (errno != ERANGE || size <= groups.size() * sizeof(gid_t)) return {peer.gid};
    groups.resize(size / sizeof(gid_t));
  }
  groups.resize(size / sizeof(gid_t));
  groups.push_back(peer.gid);
  return {groups.begin(), groups.end()};
}

}  // namespace outboard::backend
