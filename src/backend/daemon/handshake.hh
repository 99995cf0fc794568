// The server's side of one handshake as a state machine without a socket: it says how many bytes it wants,
// takes them, and ends with a checked hello or with the refusal to send. Owned by the connection's guest; one
// thread. It holds 40 bytes until a header within the limit asks for more.
#pragma once

#include <array>
#include <cstddef>
#include <functional>
#include <optional>
#include <span>
#include <vector>

#include "wire/frame.hh"
#include "wire/hello.hh"
#include "wire/token_proof.hh"

namespace outboard::backend {

/// What checks the token of this id; nothing: there is no such token.
using token_finder = std::function<std::optional<wire::token_verifier>(const wire::token_id&)>;

class handshake {
 public:
  enum class state { wants_bytes, accepted, refused };

  /// `tokens` (null: none is asked for) must outlive the handshake; `challenge` is fresh random bytes;
  /// `features` are those to offer.
  handshake(const token_finder* tokens, const wire::nonce& challenge, std::uint64_t features = 0);

  /// Before the hello: proofs are good for this connection alone (token_proof.hh, bound_greeting).
  void bind(std::span<const std::byte> binding) { binding_.assign(binding.begin(), binding.end()); }

  /// The client has shown a certificate that is accepted, and needs no token.
  void waive_token() { waived_ = true; }

  /// The first bytes of the connection, ready to send.
  std::vector<std::byte> greeting() const;

  /// Where the next bytes go; never more than the hello still has. Not empty while wants_bytes.
  std::span<std::byte> wanted();
  state advance(std::size_t received);

  wire::hello& hello() { return hello_; }
  const wire::nonce& challenge() const { return challenge_; }
  /// With which the answer to an accepted hello is made; zeros: no token was asked for.
  const wire::seal& seal() const { return seal_; }
  const wire::refusal& refusal() const { return refusal_; }

 private:
  state refuse(wire::refusal_reason reason, std::string message);
  state header_complete();
  state hello_complete();
  std::vector<std::byte> greeting_payload() const;

  const token_finder* tokens_;
  wire::nonce challenge_;
  std::uint64_t features_;
  std::vector<std::byte> binding_;
  bool waived_ = false;
  std::array<std::byte, wire::header_size> header_{};
  std::vector<std::byte> payload_;
  std::size_t received_ = 0;
  bool in_payload_ = false;
  wire::hello hello_;
  wire::seal seal_{};
  wire::refusal refusal_;
};

/// The frame that accepts a client, and answers the question of one that asks nothing more.
std::vector<std::byte> make_welcome(const wire::seal& seal, std::vector<std::byte> content,
                                    std::uint64_t session = 0);

}  // namespace outboard::backend
