// The connection of unix:. Owners and thread rules as in transport.hh.
#pragma once

#include <optional>

#include "transport/socket.hh"

namespace outboard::transport {

class unix_connection final : public socket_connection {
 public:
  static result<std::unique_ptr<connection>> make(unique_fd socket, std::string name);

  const capabilities& what() const override;
  status send_descriptor(int fd) override;
  result<unique_fd> receive_descriptor(deadline until) override;
  result<peer_identity> peer() const override;

 protected:
  ssize_t take(std::span<std::byte> into) override;
  bool has_kept() const override { return kept_.has_value(); }

 private:
  // A byte that carried a descriptor and was read together with bytes before it.
  struct carrier {
    std::byte byte;
    unique_fd descriptor;
  };

  using socket_connection::socket_connection;

  std::optional<carrier> kept_;
};

}  // namespace outboard::transport
