#include "transport/tcp/connection.hh"

#include <netinet/in.h>
#include <netinet/tcp.h>

#include <algorithm>

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

result<std::unique_ptr<connection>> tcp_connection::make(unique_fd socket, const tcp_options& options) {
  result<socket_address> peer = remote_address(socket.get());
  if (!peer) return std::move(peer).error();
  result<unique_fd> event = wakeup::make_event();
  if (!event) return std::move(event).error();
  set_option(socket.get(), IPPROTO_TCP, TCP_NODELAY, 1);
  set_keepalive(socket.get(), options.silence);
  return std::unique_ptr<connection>(new tcp_connection(std::move(socket), std::move(event).value(),
                                                        "tcp:" + peer->text(), options.silence));
}

tcp_connection::tcp_connection(unique_fd socket, unique_fd event, std::string name,
                               std::chrono::milliseconds silence)
    : socket_connection(std::move(socket), std::move(event), std::move(name)), silence_(silence) {
  set_patience(std::max(std::chrono::milliseconds(100), silence / 6));
}

const capabilities& tcp_connection::what() const {
  static constexpr capabilities all{.detachable = true, .preferred_chunk = 256 << 10};
  return all;
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
