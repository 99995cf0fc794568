#include "transport/socket.hh"

#include <fcntl.h>

#include <algorithm>
#include <array>
#include <cerrno>

#include "base/errno_text.hh"
#include "transport/spin.hh"

namespace outboard::transport {

namespace {

bool would_block(int code) { return code == EAGAIN || code == EWOULDBLOCK; }

// Walks over the caller's parts without copying them all: sendmsg takes a limited number at a time, and may
// stop inside one.
class part_cursor {
 public:
  explicit part_cursor(std::span<const iovec> parts) : parts_(parts) { skip_empty(); }

  bool finished() const { return index_ == parts_.size(); }

  std::size_t fill(std::span<iovec> window) const {
    std::size_t n = std::min(window.size(), parts_.size() - index_);
    std::copy_n(parts_.begin() + static_cast<std::ptrdiff_t>(index_), n, window.begin());
    window[0].iov_base = static_cast<char*>(window[0].iov_base) + offset_;
    window[0].iov_len -= offset_;
    return n;
  }

  void advance(std::size_t bytes) {
    while (bytes > 0) {
      std::size_t step = std::min(bytes, parts_[index_].iov_len - offset_);
      offset_ += step;
      bytes -= step;
      skip_empty();
    }
  }

 private:
  void skip_empty() {
    while (index_ < parts_.size() && offset_ == parts_[index_].iov_len) ++index_, offset_ = 0;
  }

  std::span<const iovec> parts_;
  std::size_t index_ = 0;
  std::size_t offset_ = 0;
};

}  // namespace

socket_connection::socket_connection(unique_fd socket, unique_fd event, std::string name)
    : fd_(std::move(socket)), wakeup_(std::move(event)), name_(std::move(name)) {}

io_result socket_connection::send(std::span<const iovec> parts, deadline until) {
  part_cursor cursor(parts);
  std::size_t sent = 0;
  std::array<iovec, 16> window;
  while (!cursor.finished()) {
    if (is_shut()) return {io::broken, sent};
    msghdr message{};
    message.msg_iov = window.data();
    message.msg_iovlen = cursor.fill(window);
    ssize_t n = ::sendmsg(fd_.get(), &message, MSG_DONTWAIT | MSG_NOSIGNAL);
    if (n >= 0) {
      sent += static_cast<std::size_t>(n);
      cursor.advance(static_cast<std::size_t>(n));
    } else if (would_block(errno)) {
      if (io waited = wait_as_sender(until); waited != io::done) return {waited, sent};
    } else if (errno != EINTR) {
      return {io::broken, sent};
    }
  }
  return {io::done, sent};
}

io_result socket_connection::attempt(std::span<std::byte> into) {
  for (;;) {
    if (is_shut()) return {io::broken, 0};
    ssize_t n = take(into);
    if (n > 0) return {io::done, static_cast<std::size_t>(n)};
    if (n == 0) return {is_shut() ? io::broken : io::closed, 0};
    if (would_block(errno)) return {io::timed_out, 0};
    if (errno != EINTR) return {io::broken, 0};
  }
}

/// What comes at once costs no clock and counts as nobody's spinning.
io_result socket_connection::attempt_soon(std::span<std::byte> into) {
  constexpr int looks = 8;
  io_result got{io::timed_out, 0};
  for (int i = 0; i < looks && got.status == io::timed_out && !wakeup_.raised(); ++i) {
    spin_pause();
    got = attempt(into);
  }
  return got;
}

io_result socket_connection::attempt_awake(std::span<std::byte> into, deadline until) {
  spin spinning(spin_, until);
  while (!wakeup_.raised() && spinning.again()) {
    io_result got = attempt(into);
    if (got.status != io::timed_out) return got;
  }
  return {io::timed_out, 0};
}

io_result socket_connection::receive(std::span<std::byte> into, deadline until) {
  if (into.empty()) return {io::done, 0};
  io_result got = attempt(into);
  const bool spins = spin_.count() > 0;
  if (got.status == io::timed_out && spins && habit_.worth()) got = attempt_soon(into);
  if (got.status != io::timed_out) return got;
  const deadline since = spins ? clock::now() : deadline();
  if (spins && habit_.worth()) got = attempt_awake(into, until);
  while (got.status == io::timed_out) {
    io waited = await_bytes(until);
    if (waited != io::done) return {waited, 0};
    got = attempt(into);
  }
  if (spins && got.status == io::done) habit_.waited(clock::now() - since, spin_);
  return got;
}

io socket_connection::wait_readable(deadline until) {
  if (is_shut()) return io::broken;
  if (has_kept()) return io::done;
  if (spin_.count() > 0) {
    pollfd one{fd_.get(), POLLIN, 0};
    spin spinning(spin_, until);
    while (!wakeup_.raised() && spinning.again())
      if (poll_until({&one, 1}, deadline::min()) > 0) return io::done;
  }
  return wait_as_receiver(POLLIN, until);
}

// When to ask again whether the peer is silent.
deadline socket_connection::next_look(deadline until) const {
  if (patience_.count() == 0) return until;
  return std::min<deadline>(until, clock::now() + patience_);
}

io socket_connection::wait_as_receiver(short events, deadline until) {
  for (;;) {
    if (is_shut()) return io::broken;
    deadline slice = next_look(until);
    io waited = wakeup_.wait(fd_.get(), events, slice);
    if (waited != io::timed_out || slice == until) return waited;
    if (peer_is_silent()) return io::broken;
  }
}

io socket_connection::wait_as_sender(deadline until) {
  for (;;) {
    deadline slice = next_look(until);
    // A peer that ends its direction ends both (no half-close in the contract); TCP with a closed window
    // would tell a sender no other way.
    pollfd one{fd_.get(), POLLOUT | POLLRDHUP, 0};
    int ready = poll_until({&one, 1}, slice);
    if (ready < 0) return io::broken;
    if (ready > 0) {
      bool ended = (one.revents & (POLLRDHUP | POLLERR | POLLHUP | POLLNVAL)) != 0;
      return ended ? io::broken : io::done;
    }
    if (slice == until) return io::timed_out;
    if (peer_is_silent()) return io::broken;
  }
}

bool socket_connection::peer_gone() {
  std::lock_guard lock(descriptor_mutex_);
  pollfd p{fd_.get(), POLLRDHUP, 0};
  if (is_shut() || !fd_) return true;
  return poll_until({&p, 1}, deadline::min()) == 1 && (p.revents & (POLLRDHUP | POLLHUP | POLLERR)) != 0;
}

void socket_connection::shutdown() {
  std::lock_guard lock(descriptor_mutex_);
  if (!fd_) return;
  shut_.store(true, std::memory_order_release);
  ::shutdown(fd_.get(), SHUT_RDWR);
}

result<unique_fd> socket_connection::detach() {
  std::lock_guard lock(descriptor_mutex_);
  if (!fd_ || is_shut()) return failure(name_ + " is closed and cannot be handed over");
  if (has_kept())
    return failure(name_ + " holds a descriptor that was not received and cannot be handed over");
  shut_.store(true, std::memory_order_release);
  return std::move(fd_);
}

ssize_t socket_connection::take(std::span<std::byte> into) {
  return ::recv(fd_.get(), into.data(), into.size(), MSG_DONTWAIT);
}

socket_listener::socket_listener(unique_fd socket, unique_fd event, std::string url)
    : fd_(std::move(socket)), wakeup_(std::move(event)), url_(std::move(url)) {
  // A client that gives up between poll and accept must not leave accept waiting.
  ::fcntl(fd_.get(), F_SETFL, ::fcntl(fd_.get(), F_GETFL) | O_NONBLOCK);
}

result<std::unique_ptr<connection>> socket_listener::accept(deadline until) {
  using outboard::error;
  for (;;) {
    // An interrupt comes first here: under a flood of clients a server must still hear that it shall stop.
    unique_fd socket;
    if (!wakeup_.raised()) {
      socket.reset(::accept4(fd_.get(), nullptr, nullptr, SOCK_CLOEXEC));
      if (socket) {
        auto made = welcome(std::move(socket));
        if (made.ok() || made.error().next != action::reconnect) return made;
        continue;  // that client is gone; the next
      }
      switch (errno) {
        case EAGAIN:
        case EINTR:
        case ECONNABORTED:
        case EPROTO:
          break;  // that client is gone; the next
        case EMFILE:
        case ENFILE:
        case ENOBUFS:
        case ENOMEM:
          return error{action::retry, url_ + ": cannot take a client now: " + errno_text(errno)};
        default:
          return failure(url_ + ": accept: " + errno_text(errno));
      }
    }
    switch (wakeup_.wait(fd_.get(), wakeup_.raised() ? 0 : POLLIN, until)) {
      case io::done:
        break;
      case io::timed_out:
        return error{action::retry, url_ + ": no client came in time"};
      case io::interrupted:
        return error{action::retry, url_ + ": interrupted"};
      default:
        return failure(url_ + ": poll: " + errno_text(errno));
    }
  }
}

result<unique_fd> make_stream_socket(int family) {
  unique_fd fd(::socket(family, SOCK_STREAM | SOCK_CLOEXEC, 0));
  if (!fd) return failure("no socket: " + errno_text(errno));
  return fd;
}

status check_stream_socket(int fd, int family, int other_family, bool listening) {
  auto option = [&](int name) {
    int value = -1;
    socklen_t size = sizeof value;
    return ::getsockopt(fd, SOL_SOCKET, name, &value, &size) == 0 ? value : -1;
  };
  std::string who = "descriptor " + std::to_string(fd);
  if (option(SO_TYPE) != SOCK_STREAM) return failure(who + " is no stream socket");
  int found = option(SO_DOMAIN);
  if (found != family && found != other_family)
    return failure(who + " is a socket of address family " + std::to_string(found) +
                   ", not of this transport");
  if ((option(SO_ACCEPTCONN) == 1) != listening)
    return failure(who + (listening ? " is not a listening socket" : " is a listening socket"));
  if (::fcntl(fd, F_SETFD, FD_CLOEXEC) != 0) return failure(who + ": " + errno_text(errno));
  return {};
}

std::chrono::milliseconds time_left(deadline until) {
  using std::chrono::milliseconds;
  constexpr milliseconds day = std::chrono::hours(24);
  deadline now = clock::now();
  if (until <= now) return milliseconds(1);
  if (until - now > day) return day;
  return std::max(milliseconds(1), std::chrono::ceil<milliseconds>(until - now));
}

}  // namespace outboard::transport
