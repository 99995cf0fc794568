#include "wire/munge_proof.hh"

#include <string_view>

#include "base/random.hh"

namespace outboard::wire {
namespace {

constexpr std::size_t secret_size = 32;
/// In front of the credential's bytes.
constexpr std::size_t length_size = sizeof(std::uint64_t);

sha256_digest seen(std::span<const std::byte> hello, std::span<const std::byte> greeting) {
  sha256_hasher h;
  h.update(sha256(greeting));
  h.update(hello);
  return h.finish();
}

seal seal_of(std::span<const std::byte> secret, const sha256_digest& of) {
  constexpr std::string_view purpose = "outboard munge";
  const auto name = std::as_bytes(std::span(purpose));
  std::vector<std::byte> message(name.begin(), name.end());
  message.insert(message.end(), of.begin(), of.end());
  return hmac_sha256(secret, message);
}

}  // namespace

munge_question ask_munge(std::span<const std::byte> hello, std::span<const std::byte> greeting) {
  const sha256_digest of = seen(hello.first(hello.size() - length_size), greeting);
  const auto secret = random_value<std::array<std::byte, secret_size>>();
  munge_question made{{of.begin(), of.end()}, seal_of(secret, of)};
  made.content.insert(made.content.end(), secret.begin(), secret.end());
  return made;
}

std::optional<seal> check_munge(std::span<const std::byte> content, std::span<const std::byte> hello,
                                std::size_t credential, std::span<const std::byte> greeting) {
  const std::size_t end = length_size + credential;
  if (content.size() != sizeof(sha256_digest) + secret_size || hello.size() < end) return std::nullopt;
  const sha256_digest of = seen(hello.first(hello.size() - end), greeting);
  if (!equal_in_constant_time(content.first(of.size()), of)) return std::nullopt;
  return seal_of(content.subspan(of.size()), of);
}

}  // namespace outboard::wire
