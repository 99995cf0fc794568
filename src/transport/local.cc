#include "transport/local.hh"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/time.h>
#include <sys/un.h>

#include <cerrno>
#include <cstring>
#include <thread>

#include "base/errno_text.hh"
#include "transport/local_peer.hh"
#include "transport/local_socket.hh"
#include "transport/url.hh"

namespace outboard::transport {

namespace {

using outboard::error;

result<sockaddr_un> to_address(std::string_view scheme, std::string_view path) {
  const std::string name = std::string(scheme) + ":";
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  constexpr std::size_t limit = sizeof address.sun_path - 1;
  if (path.empty()) return failure(name + " needs the path of a socket");
  if (path[0] != '/') return failure(name + printable(path) + ": the path must begin with /");
  if (path.find('\0') != std::string_view::npos)
    return failure(name + printable(path) + ": a NUL in the path");
  if (path.size() > limit)
    return failure(name + printable(path) + ": the path has " + std::to_string(path.size()) +
                   " bytes, sockets take at most " + std::to_string(limit));
  std::memcpy(address.sun_path, path.data(), path.size());
  return address;
}

const sockaddr* generic(const sockaddr_un& a) { return reinterpret_cast<const sockaddr*>(&a); }

std::string bound_path(int fd) {
  sockaddr_un a{};
  socklen_t size = sizeof a;
  if (::getsockname(fd, reinterpret_cast<sockaddr*>(&a), &size) != 0) return "";
  return std::string(a.sun_path, ::strnlen(a.sun_path, sizeof a.sun_path));
}

void set_send_timeout(int fd, std::chrono::milliseconds limit) {
  timeval t{static_cast<time_t>(limit.count() / 1000), static_cast<suseconds_t>(limit.count() % 1000 * 1000)};
  ::setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &t, sizeof t);
}

error connect_error(const std::string& name, int code) {
  switch (code) {
    case ENOENT:
      return {action::retry, name + ": no back-end listens there (the socket does not exist)"};
    case ECONNREFUSED:
      return {action::retry, name + ": no back-end listens there any more (its socket is left over)"};
    case EAGAIN:
      return {action::retry, name + ": the back-end took no new client in time"};
    case EACCES:
    case EPERM:
      return failure(name + ": permission denied; the socket belongs to another user");
    case EPROTOTYPE:
      return failure(name + ": that socket is not a stream socket");
    case ENOTSOCK:
      return failure(name + " is not a socket");
    default:
      return failure(name + ": " + errno_text(code));
  }
}

// The file that stands at `path`, so that only our own is removed later.
struct file_identity {
  dev_t device = 0;
  ino_t inode = 0;
  bool operator==(const file_identity&) const = default;
};

bool identify(const std::string& path, file_identity& id) {
  struct stat s;
  if (::lstat(path.c_str(), &s) != 0 || !S_ISSOCK(s.st_mode)) return false;
  id = {s.st_dev, s.st_ino};
  return true;
}

class local_listener final : public socket_listener {
 public:
  /// `own`: the socket file was made by us and goes when we go.
  local_listener(unique_fd socket, unique_fd event, std::string_view scheme, std::string path, bool own,
                 make_connection make)
      : socket_listener(std::move(socket), std::move(event), std::string(scheme) + ":" + path),
        path_(std::move(path)),
        maker_(own ? ::getpid() : -1),
        make_(make) {
    if (own && !identify(path_, file_)) maker_ = -1;
  }

  ~local_listener() override {
    file_identity now;
    if (maker_ == ::getpid() && identify(path_, now) && now == file_) ::unlink(path_.c_str());
  }

 protected:
  result<std::unique_ptr<connection>> welcome(unique_fd socket) override {
    return make_(std::move(socket), url());
  }

 private:
  std::string path_;
  pid_t maker_;  // a forked child that drops its copy leaves the file alone
  file_identity file_;
  make_connection make_;
};

// Held while a socket file is judged and replaced, so that two servers that start at once do not both find
// the old one dead. A lock on the folder leaves nothing behind. Best effort: some file systems know no locks.
unique_fd lock_folder(const std::string& path) {
  std::string folder = path.substr(0, path.rfind('/') + 1);
  unique_fd fd(::open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  for (int tries = 0; fd && tries < 100; ++tries) {
    if (::flock(fd.get(), LOCK_EX | LOCK_NB) == 0 || errno != EWOULDBLOCK) break;
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  }
  return fd;
}

// Removes what a dead server left; an error when anything else stands there. Nothing there is fine.
status clear_the_place(const std::string& name, const std::string& path, const sockaddr_un& address) {
  struct stat s;
  if (::lstat(path.c_str(), &s) != 0) return {};  // bind() says it better
  if (!S_ISSOCK(s.st_mode))
    return failure(name + ": a file that is no socket stands there; it was left alone");
  result<unique_fd> probe = make_stream_socket(AF_UNIX);
  if (!probe) return std::move(probe).error();
  ::fcntl(probe->get(), F_SETFL, O_NONBLOCK);
  if (::connect(probe->get(), generic(address), sizeof address) == 0 || errno == EAGAIN)
    return failure(name + ": another server listens there already");
  if (errno == ENOENT) return {};
  if (errno != ECONNREFUSED) return connect_error(name, errno);
  if (::unlink(path.c_str()) != 0 && errno != ENOENT)
    return failure(name + ": cannot remove the socket of a dead server: " + errno_text(errno));
  return {};
}

class local_transport final : public transport {
 public:
  local_transport(std::string_view scheme, make_connection make) : scheme_(scheme), make_(make) {}

  std::string_view scheme() const override { return scheme_; }

  result<std::unique_ptr<connection>> connect(std::string_view path, deadline until) override {
    result<sockaddr_un> address = to_address(scheme_, path);
    if (!address) return std::move(address).error();
    result<unique_fd> socket = make_stream_socket(AF_UNIX);
    if (!socket) return std::move(socket).error();
    std::string name = named(path);
    // A full backlog cannot be polled for; a blocking connect waits for room under SO_SNDTIMEO.
    for (;;) {
      set_send_timeout(socket->get(), until == no_deadline ? std::chrono::milliseconds(0) : time_left(until));
      if (::connect(socket->get(), generic(*address), sizeof *address) == 0) break;
      if (errno != EINTR) return connect_error(name, errno);
    }
    set_send_timeout(socket->get(), std::chrono::milliseconds(0));
    if (const status trusted = check_server(socket->get(), std::string(path)); !trusted.ok())
      return failure(name + ": " + trusted.error().message);
    return make_(out_of_the_way(std::move(socket).value()), std::move(name));
  }

  result<std::unique_ptr<listener>> listen(std::string_view where, const listen_options& options) override {
    result<sockaddr_un> address = to_address(scheme_, where);
    if (!address) return std::move(address).error();
    std::string path(where), name = named(where);
    result<unique_fd> socket = make_stream_socket(AF_UNIX);
    if (!socket) return std::move(socket).error();
    unique_fd lock = lock_folder(path);
    OUTBOARD_TRY(clear_the_place(name, path, *address));
    // The file takes its mode from the socket, so that it is never open to others, whatever the umask (which
    // is the whole process's and not ours to change). The chmod gives back what an odd umask took.
    ::fchmod(socket->get(), 0600);
    if (::bind(socket->get(), generic(*address), sizeof *address) != 0)
      return failure(name + ": cannot make the socket: " + errno_text(errno));
    if (::chmod(path.c_str(), 0600) != 0 || ::listen(socket->get(), options.backlog) != 0) {
      int code = errno;
      ::unlink(path.c_str());
      return failure(name + ": " + errno_text(code));
    }
    return make_listener(std::move(socket).value(), std::move(path), true);
  }

  result<std::unique_ptr<connection>> attach(unique_fd fd) override {
    OUTBOARD_TRY(check_stream_socket(fd.get(), AF_UNIX, 0, false));
    sockaddr_un peer{};
    socklen_t size = sizeof peer;
    if (::getpeername(fd.get(), reinterpret_cast<sockaddr*>(&peer), &size) != 0)
      return failure("descriptor " + std::to_string(fd.get()) + " is not connected: " + errno_text(errno));
    std::string path = bound_path(fd.get());
    if (path.empty()) path = std::string(peer.sun_path, ::strnlen(peer.sun_path, sizeof peer.sun_path));
    return make_(std::move(fd), named(path));
  }

  result<std::unique_ptr<listener>> adopt_listener(unique_fd fd) override {
    OUTBOARD_TRY(check_stream_socket(fd.get(), AF_UNIX, 0, true));
    std::string path = bound_path(fd.get());
    return make_listener(std::move(fd), std::move(path), false);
  }

 private:
  std::string named(std::string_view path) const { return scheme_ + ":" + std::string(path); }

  result<std::unique_ptr<listener>> make_listener(unique_fd socket, std::string path, bool own) const {
    result<unique_fd> event = wakeup::make_event();
    if (!event) {
      if (own) ::unlink(path.c_str());
      return std::move(event).error();
    }
    return std::unique_ptr<listener>(new local_listener(std::move(socket), std::move(event).value(), scheme_,
                                                        std::move(path), own, make_));
  }

  std::string scheme_;
  make_connection make_;
};

}  // namespace

std::unique_ptr<transport> make_local(std::string_view scheme, make_connection make) {
  return std::make_unique<local_transport>(scheme, make);
}

}  // namespace outboard::transport
