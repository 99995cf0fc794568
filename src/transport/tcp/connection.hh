// The connection of tcp:. Owners and thread rules as in transport.hh.
#pragma once

#include "transport/socket.hh"
#include "transport/tcp/tcp.hh"

namespace outboard::transport {

class tcp_connection final : public socket_connection {
 public:
  /// Which end: who connects asks, and is answered.
  enum class side : std::uint8_t { asks, answers };

  /// Sets the options of a connected socket.
  static result<std::unique_ptr<connection>> make(unique_fd socket, const make_options& options, side own);
  ~tcp_connection() override { (void)take_seen(); }

  const capabilities& what() const override;
  io wait_readable(deadline until) override;
  result<unique_fd> detach() override;

 protected:
  ssize_t take(std::span<std::byte> into) override;
  bool peer_is_silent() const override;

 private:
  tcp_connection(unique_fd socket, unique_fd event, std::string name, std::chrono::milliseconds silence,
                 side own);
  bool take_seen();

  std::chrono::milliseconds silence_;
  const side own_;
  std::size_t seen_ = 0;  // bytes that were received but lie in the socket still; of the receiver
};

}  // namespace outboard::transport
