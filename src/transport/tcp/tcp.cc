#include "transport/tcp/tcp.hh"

#include <fcntl.h>
#include <netinet/in.h>

#include <algorithm>
#include <cerrno>

#include "base/errno_text.hh"
#include "transport/tcp/address.hh"
#include "transport/tcp/connection.hh"
#include "transport/url.hh"

namespace outboard::transport {

namespace {

using outboard::error;

// 0 when connected, else errno; ETIMEDOUT when `until` came first.
int connect_one(int fd, const socket_address& to, deadline until) {
  if (::connect(fd, to.get(), to.size) == 0) return 0;
  if (errno != EINPROGRESS && errno != EINTR) return errno;
  pollfd one{fd, POLLOUT, 0};
  int ready = poll_until({&one, 1}, until);
  if (ready < 0) return errno;
  if (ready == 0) return ETIMEDOUT;
  int code = 0;
  socklen_t size = sizeof code;
  return ::getsockopt(fd, SOL_SOCKET, SO_ERROR, &code, &size) == 0 ? code : errno;
}

// A connect to a free port of this host may be given that port as its own and meet itself.
bool met_itself(int fd) {
  result<socket_address> here = local_address(fd), there = remote_address(fd);
  return here && there && *here == *there;
}

result<unique_fd> connect_socket(const socket_address& to, deadline until, int& code) {
  result<unique_fd> socket = make_stream_socket(to.storage.ss_family);
  if (!socket) return socket;
  int flags = ::fcntl(socket->get(), F_GETFL);
  ::fcntl(socket->get(), F_SETFL, flags | O_NONBLOCK);
  code = connect_one(socket->get(), to, until);
  if (code == 0 && met_itself(socket->get())) code = ECONNREFUSED;
  ::fcntl(socket->get(), F_SETFL, flags);
  return socket;
}

// A fair share of the time for each address that is still to be tried, so that one dead address does not eat
// all.
deadline share(deadline until, std::size_t addresses_left) {
  if (until == no_deadline || addresses_left <= 1) return until;
  deadline now = clock::now();
  return until <= now ? until : now + (until - now) / static_cast<int>(addresses_left);
}

error connect_error(const std::string& name, const std::string& tried, int code) {
  std::string at = name + (tried.empty() ? "" : " (" + tried + ")");
  switch (code) {
    case ECONNREFUSED:
      return {action::retry, at + ": connection refused; no back-end listens on that port", code};
    case ETIMEDOUT:
      return {action::retry, at + ": timed out; the host is down or a firewall drops the packets"};
    case EHOSTUNREACH:
    case ENETUNREACH:
      return {action::retry, at + ": no route to the host"};
    case ECONNRESET:
      return {action::retry, at + ": the host reset the connection", connection_broke};
    default:
      return failure(at + ": " + errno_text(code));
  }
}

class tcp_listener final : public socket_listener {
 public:
  tcp_listener(unique_fd socket, unique_fd event, std::string url, const make_options& options)
      : socket_listener(std::move(socket), std::move(event), std::move(url)), options_(options) {}

 protected:
  result<std::unique_ptr<connection>> welcome(unique_fd socket) override {
    return tcp_connection::make(std::move(socket), options_, tcp_connection::side::answers);
  }

 private:
  make_options options_;
};

class tcp_transport final : public transport {
 public:
  explicit tcp_transport(const make_options& options) : options_(options) {}

  std::string_view scheme() const override { return "tcp"; }

  result<std::unique_ptr<connection>> connect(std::string_view address, deadline until) override {
    std::string name = "tcp:" + printable(address);
    result<std::vector<socket_address>> all = resolve(address);
    if (!all) return name_error(name, std::move(all).error());
    if (parse_host_port(address)->port == 0) return failure(name + ": port 0 is only for listening");
    int code = ETIMEDOUT;
    std::string tried;
    for (std::size_t i = 0; i < all->size(); ++i) {
      const socket_address& to = (*all)[i];
      result<unique_fd> socket = connect_socket(to, share(until, all->size() - i), code);
      if (socket && code == 0)
        return tcp_connection::make(out_of_the_way(std::move(socket).value()), options_,
                                    tcp_connection::side::asks);
      if (!socket && all->size() == 1) return std::move(socket).error();
      tried += (tried.empty() ? "" : ", ") + to.text();
    }
    return connect_error(name, name == "tcp:" + tried ? "" : tried, code);
  }

  result<std::unique_ptr<listener>> listen(std::string_view address, const listen_options& options) override {
    std::string name = "tcp:" + printable(address);
    result<std::vector<socket_address>> all = resolve(address);
    if (!all) return name_error(name, std::move(all).error());
    // One socket a listener: of a name with several addresses IPv4 is bound, which clients of every age try.
    std::stable_sort(all->begin(), all->end(), [](const socket_address& a, const socket_address& b) {
      return a.storage.ss_family == AF_INET && b.storage.ss_family != AF_INET;
    });
    const socket_address& at = all->front();
    if (!at.is_loopback() && !options.allow_foreign_hosts)
      return failure(name +
                     " would let other machines in: give a token file or --insecure, or listen on 127.0.0.1");
    result<unique_fd> socket = make_stream_socket(at.storage.ss_family);
    if (!socket) return std::move(socket).error();
    int on = 1;
    ::setsockopt(socket->get(), SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
    if (::bind(socket->get(), at.get(), at.size) != 0 || ::listen(socket->get(), options.backlog) != 0)
      return bind_error(name, errno);
    return make_listener(std::move(socket).value());
  }

  result<std::unique_ptr<connection>> attach(unique_fd fd) override {
    OUTBOARD_TRY(check_stream_socket(fd.get(), AF_INET, AF_INET6, false));
    return tcp_connection::make(std::move(fd), options_, tcp_connection::side::answers);
  }

  result<std::unique_ptr<listener>> adopt_listener(unique_fd fd) override {
    OUTBOARD_TRY(check_stream_socket(fd.get(), AF_INET, AF_INET6, true));
    return make_listener(std::move(fd));
  }

 private:
  static error name_error(const std::string& name, error e) {
    e.message = name + ": " + e.message;
    return e;
  }

  static error bind_error(const std::string& name, int code) {
    switch (code) {
      case EADDRINUSE:
        return failure(name + ": another program listens on that port already");
      case EADDRNOTAVAIL:
        return failure(name + ": this machine does not have that address");
      case EACCES:
        return failure(name + ": ports below 1024 need privileges");
      default:
        return failure(name + ": " + errno_text(code));
    }
  }

  result<std::unique_ptr<listener>> make_listener(unique_fd socket) {
    result<socket_address> at = local_address(socket.get());
    if (!at) return std::move(at).error();
    result<unique_fd> event = wakeup::make_event();
    if (!event) return std::move(event).error();
    return std::unique_ptr<listener>(
        new tcp_listener(std::move(socket), std::move(event).value(), "tcp:" + at->text(), options_));
  }

  make_options options_;
};

}  // namespace

std::unique_ptr<transport> make_tcp(const make_options& options) {
  return std::make_unique<tcp_transport>(options);
}

}  // namespace outboard::transport
