// The connection of tcp:. Owners and thread rules as in transport.hh.
#pragma once

#include "transport/socket.hh"
#include "transport/tcp/tcp.hh"

namespace outboard::transport {

class tcp_connection final : public socket_connection {
 public:
  /// Sets the options of a connected socket.
  static result<std::unique_ptr<connection>> make(unique_fd socket, const tcp_options& options);

  const capabilities& what() const override;

 protected:
  bool peer_is_silent() const override;

 private:
  tcp_connection(unique_fd socket, unique_fd event, std::string name, std::chrono::milliseconds silence);

  std::chrono::milliseconds silence_;
};

}  // namespace outboard::transport
