// How a client shows by a MUNGE credential (base/munge.hh) which user it is: its content covers the greeting
// and the hello, so nobody can show it to another server, or over another connection. It also has a secret,
// which only who can read the credential knows: the server proves with it that it could, in its welcome. Pure
// functions but for the secret, which is random; any thread.
#pragma once

#include <optional>
#include <span>
#include <vector>

#include "base/sha256.hh"
#include "wire/token_proof.hh"

namespace outboard::wire {

struct munge_question {
  std::vector<std::byte> content;  ///< of the credential
  wire::seal seal{};               ///< that the welcome must have
};

/// Client: for this encoded hello, which ends with an empty credential; `greeting` as of bound_greeting().
munge_question ask_munge(std::span<const std::byte> hello, std::span<const std::byte> greeting);

/// Server: the seal for the welcome if a credential with this content was made for this encoded hello, which
/// ends with a credential of `credential` bytes.
std::optional<seal> check_munge(std::span<const std::byte> content, std::span<const std::byte> hello,
                                std::size_t credential, std::span<const std::byte> greeting);

}  // namespace outboard::wire
