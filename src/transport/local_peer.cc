#include "transport/local_peer.hh"

#include <limits.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <cerrno>

#include "base/errno_text.hh"

namespace outboard::transport {
namespace {

error not_trusted(uid_t peer, const std::string& why) {
  return failure("the server there runs as user " + std::to_string(peer) +
                 ", who is neither root nor this user, and " + why +
                 "; let it listen in a folder of its own, such as /run/outboard, or over tcp: with a token");
}

/// Whether nobody but root and `own` can have made what stands there, link or not.
bool made_by_trusted(const std::string& path, uid_t own) {
  struct stat about {};
  return ::lstat(path.c_str(), &about) == 0 && (about.st_uid == 0 || about.st_uid == own);
}

/// Every folder on the way to `path`, which is absolute, and what stands in those where anybody may make
/// files.
status check_folders(const std::string& path, uid_t peer, uid_t own) {
  for (std::size_t at = 0; at != std::string::npos; at = path.find('/', at + 1)) {
    const std::string folder = path.substr(0, at == 0 ? 1 : at);
    struct stat about {};
    if (::stat(folder.c_str(), &about) != 0) return failure(folder + ": " + errno_text(errno));
    if (about.st_uid != 0 && about.st_uid != own && about.st_uid != peer)
      return not_trusted(peer, folder + " belongs to user " + std::to_string(about.st_uid));
    if ((about.st_mode & S_IWOTH) == 0) continue;
    // With the sticky bit others can be first there, but take nothing away.
    const std::string below = path.substr(0, path.find('/', at + 1));
    if ((about.st_mode & S_ISVTX) == 0 || !made_by_trusted(below, own))
      return not_trusted(peer, "anybody may make files in " + folder);
  }
  return {};
}

}  // namespace

status may_serve(const std::string& path, uid_t peer, uid_t own) {
  if (peer == 0 || peer == own) return {};
  // Links lead elsewhere: both the folders that were named and those that they lead to count.
  OUTBOARD_TRY(check_folders(path, peer, own));
  std::array<char, PATH_MAX> real{};
  struct stat about {};
  if (!::realpath(path.c_str(), real.data()) || ::stat(real.data(), &about) != 0)
    return failure(path + ": " + errno_text(errno));
  OUTBOARD_TRY(check_folders(real.data(), peer, own));
  if (!S_ISSOCK(about.st_mode) || about.st_uid != peer)
    return not_trusted(peer, "the socket belongs to user " + std::to_string(about.st_uid));
  return {};
}

status check_server(int socket, const std::string& path) {
  ucred peer{};
  socklen_t size = sizeof peer;
  if (::getsockopt(socket, SOL_SOCKET, SO_PEERCRED, &peer, &size) != 0)
    return failure("who listens there is not known: " + errno_text(errno));
  return may_serve(path, peer.uid, ::geteuid());
}

}  // namespace outboard::transport
