#include "transport/local_socket.hh"

#include <fcntl.h>

#include <array>
#include <cerrno>
#include <cstring>
#include <vector>

#include "base/errno_text.hh"

namespace outboard::transport {

// One recvmsg with room for exactly one descriptor: the kernel closes further ones that a peer may send.
// CMSG_SPACE would have room for two, by its padding.
ssize_t receive_message(int socket, std::span<std::byte> into, unique_fd& descriptor) {
  alignas(cmsghdr) std::array<char, CMSG_SPACE(sizeof(int))> control;
  iovec part{into.data(), into.size()};
  msghdr message{};
  message.msg_iov = &part;
  message.msg_iovlen = 1;
  message.msg_control = control.data();
  message.msg_controllen = CMSG_LEN(sizeof(int));
  ssize_t n = ::recvmsg(socket, &message, MSG_DONTWAIT | MSG_CMSG_CLOEXEC);
  if (n < 0 || message.msg_controllen < CMSG_LEN(sizeof(int))) return n;
  const cmsghdr* header = CMSG_FIRSTHDR(&message);
  if (header->cmsg_level != SOL_SOCKET || header->cmsg_type != SCM_RIGHTS) return n;
  int fd;
  std::memcpy(&fd, CMSG_DATA(header), sizeof fd);
  descriptor.reset(fd);
  return n;
}

bool send_message(int socket, std::span<const std::byte> bytes, int descriptor) {
  iovec part{const_cast<std::byte*>(bytes.data()), bytes.size()};
  alignas(cmsghdr) std::array<char, CMSG_SPACE(sizeof(int))> control{};
  msghdr message{};
  message.msg_iov = &part;
  message.msg_iovlen = 1;
  message.msg_control = control.data();
  message.msg_controllen = control.size();
  cmsghdr* c = CMSG_FIRSTHDR(&message);
  c->cmsg_level = SOL_SOCKET;
  c->cmsg_type = SCM_RIGHTS;
  c->cmsg_len = CMSG_LEN(sizeof(int));
  std::memcpy(CMSG_DATA(c), &descriptor, sizeof descriptor);
  return ::sendmsg(socket, &message, MSG_DONTWAIT | MSG_NOSIGNAL) == static_cast<ssize_t>(bytes.size());
}

result<std::unique_ptr<connection>> local_connection::make(unique_fd socket, std::string name) {
  result<unique_fd> event = wakeup::make_event();
  if (!event) return std::move(event).error();
  return std::unique_ptr<connection>(
      new local_connection(std::move(socket), std::move(event).value(), std::move(name)));
}

const capabilities& local_connection::what() const {
  static constexpr capabilities all{.same_host = true,
                                    .passes_descriptors = true,
                                    .detachable = true,
                                    .peer_identity = true,
                                    .preferred_chunk = 256 << 10,
                                    .send_is_a_call = true};
  static constexpr capabilities relayed{.same_host = false,
                                        .passes_descriptors = false,
                                        .detachable = true,
                                        .peer_identity = true,
                                        .preferred_chunk = 256 << 10,
                                        .send_is_a_call = true};
  return passes_descriptors_.load(std::memory_order_relaxed) ? all : relayed;
}

// The kernel ends a read after the byte that carries a descriptor, so the carrier is the last byte of what
// was read.
ssize_t local_connection::take(std::span<std::byte> into) {
  if (kept_) {  // receive() in the carrier's place: the protocol above went wrong, the stream stays in order
    into[0] = kept_->byte;
    kept_.reset();
    return 1;
  }
  unique_fd descriptor;
  ssize_t n = receive_message(descriptor_number(), into, descriptor);
  if (n > 1 && descriptor) {
    kept_ = carrier{into[static_cast<std::size_t>(n) - 1], std::move(descriptor)};
    return n - 1;
  }
  return n;
}

result<shared_stream> local_connection::share() const {
  if (is_shut()) return failure(describe() + " is closed and cannot go on in another process");
  if (kept_)
    return outboard::error{action::retry,
                           describe() + " holds a descriptor that was not received: not at this point"};
  shared_stream out;
  out.scheme = describe().substr(0, describe().find(':'));
  out.descriptors.emplace_back(::fcntl(descriptor_number(), F_DUPFD_CLOEXEC, 0));
  if (!out.descriptors.front()) return failure(describe() + ": " + errno_text(errno));
  return out;
}

status local_connection::send_descriptor(int fd) { return send_carrier(std::byte{0xfd}, fd, no_deadline); }

status local_connection::send_carrier(std::byte byte, int fd, deadline until) {
  for (;;) {
    if (is_shut()) return outboard::error{action::reconnect, describe() + " is closed"};
    if (send_message(descriptor_number(), {&byte, 1}, fd)) return {};
    if (errno == EAGAIN) {
      const io waited = wait_as_sender(until);
      if (waited == io::timed_out)
        return outboard::error{action::retry, describe() + ": no room for a descriptor in time"};
      if (waited != io::done) return outboard::error{action::reconnect, describe() + ": the peer is gone"};
    } else if (errno == ETOOMANYREFS) {
      return outboard::error{action::retry,
                             describe() + ": too many descriptors are under way to other processes"};
    } else if (errno == EBADF) {
      return failure(describe() + ": descriptor " + std::to_string(fd) + " is not open");
    } else if (errno != EINTR) {
      return outboard::error{action::reconnect, describe() + ": " + errno_text(errno)};
    }
  }
}

result<unique_fd> local_connection::receive_descriptor(deadline until) {
  result<carrier> got = receive_carrier(until);
  if (!got) return std::move(got).error();
  return std::move(got->descriptor);
}

result<local_connection::carrier> local_connection::receive_carrier(deadline until) {
  using outboard::error;
  if (kept_) {
    carrier had = std::move(*kept_);
    kept_.reset();
    if (had.descriptor) return had;
    passes_descriptors_.store(false, std::memory_order_relaxed);
    return failure(describe() + ": the peer sent a byte where a descriptor was expected");
  }
  for (;;) {
    if (is_shut()) return error{action::reconnect, describe() + " is closed"};
    std::byte byte;
    unique_fd descriptor;
    ssize_t n = receive_message(descriptor_number(), {&byte, 1}, descriptor);
    if (n == 1 && descriptor) return carrier{byte, std::move(descriptor)};
    if (n == 1) {
      passes_descriptors_.store(false, std::memory_order_relaxed);
      return failure(describe() + ": the peer sent a byte where a descriptor was expected");
    }
    if (n == 0)
      return error{action::reconnect, describe() + ": the peer closed where a descriptor was expected"};
    if (errno == EINTR) continue;
    if (errno != EAGAIN) return error{action::reconnect, describe() + ": " + errno_text(errno)};
    switch (wait_as_receiver(POLLIN, until)) {
      case io::done:
        break;
      case io::timed_out:
        return error{action::retry, describe() + ": no descriptor came in time"};
      case io::interrupted:
        return error{action::retry, describe() + ": interrupted"};
      default:
        return error{action::reconnect, describe() + " broke"};
    }
  }
}

namespace {

/// None where the kernel does not tell.
std::vector<std::uint32_t> groups_of_peer(int socket) {
  static_assert(sizeof(gid_t) == sizeof(std::uint32_t));
  std::vector<std::uint32_t> groups(64);
  for (;;) {
    auto bytes = static_cast<socklen_t>(groups.size() * sizeof(gid_t));
    const int told = ::getsockopt(socket, SOL_SOCKET, SO_PEERGROUPS, groups.data(), &bytes);
    if (told != 0 && errno != ERANGE) return {};
    groups.resize(bytes / sizeof(gid_t));
    if (told == 0) return groups;
  }
}

}  // namespace

result<peer_identity> local_connection::peer() const {
  ucred who;
  socklen_t size = sizeof who;
  if (::getsockopt(descriptor_number(), SOL_SOCKET, SO_PEERCRED, &who, &size) != 0)
    return failure(describe() + ": no peer credentials: " + errno_text(errno));
  return peer_identity{who.uid, who.gid, who.pid, groups_of_peer(descriptor_number())};
}

}  // namespace outboard::transport
