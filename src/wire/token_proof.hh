// How client and server show each other that they know a token, in the manner of SCRAM (RFC 5802). The
// client's proof covers the greeting and the hello, so a server that passes another one's greeting on gains a
// login for this very hello only. The server's proof covers that and its welcome: a server that does not know
// the token cannot make it. The server keeps a verifier, with which nobody can log in. None of this keeps out
// a relay that forwards everything; only an encrypted line does. Pure functions; any thread.
#pragma once

#include <optional>
#include <span>
#include <vector>

#include "base/sha256.hh"
#include "wire/hello.hh"

namespace outboard::wire {

/// What a server keeps of a token.
struct token_verifier {
  token_id id{};           ///< names the token, on an open line too
  sha256_digest stored{};  ///< checks the client's proof
  sha256_digest server{};  ///< makes the server's
};
token_verifier verifier_of(std::span<const std::byte> token);

/// Server: what the names of files are made with that it keeps for those who know the token.
sha256_digest file_secret(const token_verifier& of);

/// Makes the server's proof of one handshake. Zeros: there is no token, and the welcome's proof is zeros.
using seal = std::array<std::byte, 32>;

/// What the proofs cover as the greeting: its payload, and `binding`: on an encrypted connection what both of
/// its ends can make and nobody else (RFC 9266), so that nobody passes a proof on over another connection;
/// empty on a plain one.
std::vector<std::byte> bound_greeting(std::span<const std::byte> greeting,
                                      std::span<const std::byte> binding);

/// Client: fills in token and proof of an encoded hello. Returns the seal that the welcome must have.
seal prove(std::vector<std::byte>& hello, std::span<const std::byte> token,
           std::span<const std::byte> greeting);

/// Server: the seal for the welcome if the proof of this encoded hello is right.
std::optional<seal> check(std::span<const std::byte> hello, const token_verifier& verifier,
                          std::span<const std::byte> greeting);

/// Server: the proof of a welcome whose payload ends with room for it.
proof proof_of(std::span<const std::byte> welcome, const seal& with);
/// Server: the welcome's payload with its proof.
std::vector<std::byte> encode(const welcome& m, const seal& with);

/// Client: was this welcome's payload made with this seal?
bool has_seal(std::span<const std::byte> welcome, const seal& expected);

}  // namespace outboard::wire
