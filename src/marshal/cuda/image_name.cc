#include "marshal/cuda/image_name.hh"

#include <algorithm>
#include <string_view>
#include <vector>

namespace outboard::marshal {
namespace {

std::span<const std::byte> bytes_of(std::string_view text) { return std::as_bytes(std::span(text)); }

std::array<std::uint8_t, 32> as_numbers(const sha256_digest& digest) {
  std::array<std::uint8_t, 32> out;
  std::ranges::transform(digest, out.begin(), [](std::byte b) { return std::to_integer<std::uint8_t>(b); });
  return out;
}

}  // namespace

// With words of its own in front, so that nobody else's list of SHA-256 sums has a key in it.
image_hasher::image_hasher() { hasher_.update(bytes_of("Outboard module image 1\n")); }

image_key key_of(std::span<const std::byte> image) {
  image_hasher hasher;
  hasher.update(image);
  return hasher.finish();
}

image_name name_of(const image_key& key) { return as_numbers(hmac_sha256(key, bytes_of("name"))); }

image_proof proof_of(const image_key& key, const image_challenge& challenge) {
  const auto what = bytes_of("have ");
  std::vector<std::byte> message(what.begin(), what.end());
  message.insert(message.end(), challenge.begin(), challenge.end());
  return as_numbers(hmac_sha256(key, message));
}

}  // namespace outboard::marshal
