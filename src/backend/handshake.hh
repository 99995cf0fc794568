// The server's side of one handshake as a state machine without a socket: it says how many bytes it wants,
// takes them, and ends with a checked hello or with the refusal to send. Owned by the connection's guest; one
// thread. Holds 40 bytes until a header that was within the limit asks for more.
#pragma once

#include <array>
#include <cstddef>
#include <span>
#include <vector>

#include "wire/frame.hh"
#include "wire/hello.hh"

namespace outboard::backend {

class handshake {
 public:
  enum class state { wants_bytes, accepted, refused };

  /// `token` (empty: none is asked for) must outlive the handshake; `challenge` is fresh random bytes;
  /// `features` are those to offer.
  handshake(std::span<const std::byte> token, const wire::nonce& challenge, std::uint64_t features = 0);

  /// The first bytes of the connection, ready to send.
  std::vector<std::byte> greeting() const;

  /// Where the next bytes go; never more than the hello still has. Not empty while wants_bytes.
  std::span<std::byte> wanted();
  state advance(std::size_t received);

  wire::hello& hello() { return hello_; }
  const wire::nonce& challenge() const { return challenge_; }
  const wire::refusal& refusal() const { return refusal_; }

 private:
  state refuse(wire::refusal_reason reason, std::string message);
  state header_complete();
  state hello_complete();

  std::span<const std::byte> token_;
  wire::nonce challenge_;
  std::uint64_t features_;
  std::array<std::byte, wire::header_size> header_{};
  std::vector<std::byte> payload_;
  std::size_t received_ = 0;
  bool in_payload_ = false;
  wire::hello hello_;
  wire::refusal refusal_;
};

/// A whole frame of the handshake: header and payload.
std::vector<std::byte> make_frame(wire::frame_kind kind, std::span<const std::byte> payload);
/// The frame that accepts a client, and answers the question of one that asks nothing more.
std::vector<std::byte> make_welcome(std::vector<std::byte> content, std::uint64_t session = 0);

}  // namespace outboard::backend
