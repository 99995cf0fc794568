// The connection over a Unix stream socket, with descriptors and the peer's identity: all of unix:, and what
// shm: begins as and stands on. Owners and thread rules as in transport.hh.
#pragma once

#include <optional>
#include <span>

#include "transport/socket.hh"

namespace outboard::transport {

/// One recvmsg without waiting; `descriptor` is what came with its last byte, if anything did. Count, 0 at
/// the end, -1 with errno. The kernel ends a read behind a byte that carries one.
ssize_t receive_message(int socket, std::span<std::byte> into, unique_fd& descriptor);

/// One sendmsg without waiting of all bytes (few: the kernel takes them whole or not at all) with
/// `descriptor` beside the first. False with errno.
bool send_message(int socket, std::span<const std::byte> bytes, int descriptor);

class local_connection : public socket_connection {
 public:
  static result<std::unique_ptr<connection>> make(unique_fd socket, std::string name);

  const capabilities& what() const override;
  status send_descriptor(int fd) override;
  result<shared_stream> share() const override;
  result<unique_fd> receive_descriptor(deadline until) override;
  result<peer_identity> peer() const override;

 protected:
  // A byte that carried a descriptor and was read together with bytes before it.
  struct carrier {
    std::byte byte;
    unique_fd descriptor;
  };

  using socket_connection::socket_connection;

  ssize_t take(std::span<std::byte> into) override;
  bool has_kept() const override { return kept_.has_value(); }

  /// Sends `byte` with the descriptor as soon as the socket takes it; retry: not now, nothing has left.
  status send_carrier(std::byte byte, int fd, deadline until);
  /// Receives one byte that carries a descriptor.
  result<carrier> receive_carrier(deadline until);

  std::optional<carrier> kept_;

 private:
  // False once a byte came without the descriptor that it had to bring: a relay stands between.
  std::atomic<bool> passes_descriptors_{true};
};

}  // namespace outboard::transport
