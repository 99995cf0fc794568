#include "wire/token_proof.hh"

#include <algorithm>
#include <functional>
#include <string_view>

namespace outboard::wire {
namespace {

// An encoded hello begins with magic, protocol, features and purpose.
constexpr std::size_t proof_at = 8 + 2 + 8 + 1;
constexpr std::size_t token_at = proof_at + sizeof(proof);

std::span<const std::byte> bytes_of(std::string_view s) { return std::as_bytes(std::span(s)); }

/// Everything that a token proves is derived from this and not from the token.
sha256_digest master_of(std::span<const std::byte> token) {
  return hmac_sha256(bytes_of("outboard token"), token);
}

sha256_digest derived(const sha256_digest& key, std::string_view what) {
  return hmac_sha256(key, bytes_of(what));
}

token_verifier verifier_from(const sha256_digest& master) {
  token_verifier made{.stored = sha256(derived(master, "client")), .server = derived(master, "server")};
  std::copy_n(derived(master, "id").begin(), made.id.size(), made.id.begin());
  return made;
}

/// What both have seen so far, without the proof itself.
sha256_digest transcript(std::span<const std::byte> greeting, std::span<const std::byte> hello) {
  std::vector<std::byte> unproven(hello.begin(), hello.end());
  std::fill_n(unproven.begin() + proof_at, sizeof(proof), std::byte{0});
  sha256_hasher h;
  h.update(sha256(greeting));
  h.update(unproven);
  return h.finish();
}

proof combined(const sha256_digest& a, const sha256_digest& b) {
  proof out;
  std::transform(a.begin(), a.end(), b.begin(), out.begin(), std::bit_xor<>());
  return out;
}

seal seal_of(const sha256_digest& server, const sha256_digest& seen, std::span<const std::byte> answer) {
  std::vector<std::byte> message(seen.begin(), seen.end());
  message.insert(message.end(), answer.begin(), answer.end());
  return hmac_sha256(server, message);
}

}  // namespace

proof proof_of(std::span<const std::byte> welcome, const seal& with) {
  return with == seal{} ? proof{} : hmac_sha256(with, welcome.first(welcome.size() - sizeof(proof)));
}

token_verifier verifier_of(std::span<const std::byte> token) { return verifier_from(master_of(token)); }

sha256_digest file_secret(const token_verifier& of) { return derived(of.server, "files"); }

std::vector<std::byte> bound_greeting(std::span<const std::byte> greeting,
                                      std::span<const std::byte> binding) {
  std::vector<std::byte> both(greeting.begin(), greeting.end());
  both.insert(both.end(), binding.begin(), binding.end());
  return both;
}

seal prove(std::vector<std::byte>& hello, std::span<const std::byte> token,
           std::span<const std::byte> greeting) {
  const sha256_digest master = master_of(token);
  const token_verifier verifier = verifier_from(master);
  std::copy(verifier.id.begin(), verifier.id.end(), hello.begin() + token_at);
  const sha256_digest seen = transcript(greeting, hello);
  const proof answer = combined(derived(master, "client"), hmac_sha256(verifier.stored, seen));
  std::copy(answer.begin(), answer.end(), hello.begin() + proof_at);
  return seal_of(verifier.server, seen, answer);
}

std::optional<seal> check(std::span<const std::byte> hello, const token_verifier& verifier,
                          std::span<const std::byte> greeting) {
  if (hello.size() < token_at) return std::nullopt;
  const sha256_digest seen = transcript(greeting, hello);
  proof answer;
  std::copy_n(hello.begin() + proof_at, answer.size(), answer.begin());
  const proof key = combined(answer, hmac_sha256(verifier.stored, seen));
  if (!equal_in_constant_time(sha256(key), verifier.stored)) return std::nullopt;
  return seal_of(verifier.server, seen, answer);
}

std::vector<std::byte> encode(const welcome& m, const seal& with) {
  std::vector<std::byte> payload = encode(m);
  const proof made = proof_of(payload, with);
  std::copy(made.begin(), made.end(), payload.end() - sizeof made);
  return payload;
}

bool has_seal(std::span<const std::byte> welcome, const seal& expected) {
  return welcome.size() >= sizeof(proof) &&
         equal_in_constant_time(welcome.last(sizeof(proof)), proof_of(welcome, expected));
}

}  // namespace outboard::wire
