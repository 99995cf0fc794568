#include "transport/tcp/connection.hh"

#include <netinet/in.h>
#include <netinet/tcp.h>

#include <algorithm>
#include <cerrno>

#include "transport/tcp/address.hh"

namespace outboard::transport {

namespace {

void set_option(int fd, int level, int name, int value) {
  ::setsockopt(fd, level, name, &value, sizeof value);
}

// An idle connection is probed from half of the limit on, three times.
void set_keepalive(int fd, std::chrono::milliseconds silence) {
  int seconds = static_cast<int>(std::chrono::ceil<std::chrono::seconds>(silence).count());
  set_option(fd, IPPROTO_TCP, TCP_KEEPIDLE, std::max(1, seconds / 2));
  set_option(fd, IPPROTO_TCP, TCP_KEEPINTVL, std::max(1, seconds / 6));
  set_option(fd, IPPROTO_TCP, TCP_KEEPCNT, 3);
  set_option(fd, SOL_SOCKET, SO_KEEPALIVE, 1);
}

}  // namespace

result<std::unique_ptr<connection>> tcp_connection::make(unique_fd socket, const make_options& options,
                                                         side own) {
  result<socket_address> peer = remote_address(socket.get());
  // A peer that has reset the connection has no address any more.
  if (!peer) return outboard::error{action::reconnect, "the host reset the connection", connection_broke};
  result<unique_fd> event = wakeup::make_event();
  if (!event) return std::move(event).error();
  set_option(socket.get(), IPPROTO_TCP, TCP_NODELAY, 1);
  set_keepalive(socket.get(), options.silence);
  return std::unique_ptr<connection>(new tcp_connection(std::move(socket), std::move(event).value(),
                                                        "tcp:" + peer->text(), options.silence, own));
}

tcp_connection::tcp_connection(unique_fd socket, unique_fd event, std::string name,
                               std::chrono::milliseconds silence, side own)
    : socket_connection(std::move(socket), std::move(event), std::move(name)), silence_(silence), own_(own) {
  set_patience(std::max(std::chrono::milliseconds(100), silence / 6));
}

const capabilities& tcp_connection::what() const {
  static constexpr capabilities all{.detachable = true, .preferred_chunk = 256 << 10, .send_is_a_call = true};
  return all;
}

// A read that takes the last of two short segments acknowledges them before it returns, which costs 3 us: a
// launch, say, and the wait behind it. So who answers and is in haste only looks at short requests: the
// answer acknowledges them, and they are taken with the next look, while the peer has something to do. Bytes
// by the many are taken at once, their sender waits for room. And who asks takes all at once: a socket that
// is closed with bytes in it throws away what it has not sent yet.
ssize_t tcp_connection::take(std::span<std::byte> into) {
  constexpr ssize_t many = 4096;
  if (!take_seen()) return errno = ECONNRESET, -1;
  if (own_ == side::asks || spin_.count() == 0) return socket_connection::take(into);
  const ssize_t n = ::recv(descriptor_number(), into.data(), into.size(), MSG_DONTWAIT | MSG_PEEK);
  if (n <= 0) return n;
  seen_ = static_cast<std::size_t>(n);
  if (n >= many && !take_seen()) return errno = ECONNRESET, -1;
  return n;
}

/// False: what was seen cannot be taken, so that it would come twice.
bool tcp_connection::take_seen() {
  while (seen_ > 0) {
    const ssize_t n = ::recv(descriptor_number(), nullptr, seen_, MSG_DONTWAIT | MSG_TRUNC);
    if (n > 0) {
      seen_ -= static_cast<std::size_t>(n);
    } else if (n == 0 || errno != EINTR) {
      return false;
    }
  }
  return true;
}

io tcp_connection::wait_readable(deadline until) {
  return take_seen() ? socket_connection::wait_readable(until) : io::broken;
}

result<unique_fd> tcp_connection::detach() {
  (void)take_seen();
  return socket_connection::detach();
}

// Keepalive is off while bytes are unacknowledged; then the kernel gives up after a quarter of an hour.
// TCP_USER_TIMEOUT would end that sooner, but it also ends a connection whose peer is well and just does not
// read for so long (a program stopped in a debugger). So we look ourselves: several retransmissions or window
// probes without any acknowledgement for the whole limit. tcpi_retransmits and tcpi_probes start again at
// each answer.
bool tcp_connection::peer_is_silent() const {
  tcp_info info{};
  socklen_t size = sizeof info;
  if (::getsockopt(descriptor_number(), IPPROTO_TCP, TCP_INFO, &info, &size) != 0) return false;
  return (info.tcpi_retransmits >= 2 || info.tcpi_probes >= 2) &&
         std::chrono::milliseconds(info.tcpi_last_ack_recv) >= silence_;
}

}  // namespace outboard::transport
