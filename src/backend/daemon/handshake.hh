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

#include "base/munge.hh"
#include "wire/frame.hh"
#include "wire/hello.hh"
#include "wire/token_proof.hh"

namespace outboard::backend {

/// What checks the token of this id; nothing: there is no such token.
using token_finder = std::function<std::optional<wire::token_verifier>(const wire::token_id&)>;

/// What a MUNGE credential says of who made it.
using credential_reader = std::function<result<munge::claim>(const std::string& credential)>;

class handshake {
 public:
  enum class state { wants_bytes, accepted, refused };

  /// `tokens` (null: none is asked for) must outlive the handshake; `challenge` is fresh random bytes;
  /// `features` are those to offer.
  handshake(const token_finder* tokens, const wire::nonce& challenge, std::uint64_t features = 0);

  /// Before the hello: proofs are good for this connection alone (token_proof.hh, bound_greeting).
  void bind(std::span<const std::byte> binding) { binding_.assign(binding.begin(), binding.end()); }

  /// Before the greeting: clients may show by MUNGE which user they are. It outlives the handshake.
  void take_credentials(const credential_reader& reader);

  /// The client has shown a certificate that is accepted, and needs no token.
  void waive_token() { waived_ = true; }

  /// The first bytes of the connection, ready to send.
  std::vector<std::byte> greeting() const;

  /// Where the next bytes go; never more than the hello still has. Not empty while wants_bytes.
  std::span<std::byte> wanted();
  state advance(std::size_t received);

  wire::hello& hello() { return hello_; }
  const wire::nonce& challenge() const { return challenge_; }
  /// With which the answer to an accepted hello is made; zeros: it has proven nothing.
  const wire::seal& seal() const { return seal_; }
  /// Which user it is by MUNGE; nothing: it has shown no credential.
  const std::optional<munge::claim>& user() const { return user_; }
  const wire::refusal& refusal() const { return refusal_; }

 private:
  state refuse(wire::refusal_reason reason, std::string message);
  state header_complete();
  state hello_complete();
  using payload_bytes = std::span<const std::byte>;
  /// Why what it proves is not enough; nothing: it is.
  std::optional<wire::refusal> problem_of_proof(const wire::hello& hello, payload_bytes payload);
  std::optional<wire::refusal> problem_of_credential(const wire::hello& hello, payload_bytes payload);
  std::vector<std::byte> greeting_payload() const;

  const token_finder* tokens_;
  const credential_reader* credentials_ = nullptr;
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
  std::optional<munge::claim> user_;
  wire::refusal refusal_;
};

/// The frame that accepts a client, and answers the question of one that asks nothing more.
std::vector<std::byte> make_welcome(const wire::seal& seal, std::vector<std::byte> content,
                                    std::uint64_t session = 0);

}  // namespace outboard::backend
