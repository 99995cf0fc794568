// How two ends name a module image without sending it. The key is a hash of the image and never travels; the
// name is derived from the key and does. A peer that has only the name can compute neither the key nor a
// proof, so a valid proof shows that the peer has had the image. Pure functions, any thread.
#pragma once

#include <array>
#include <cstddef>
#include <span>

#include "base/sha256.hh"

namespace outboard::marshal {

/// A smaller image is always sent: a round trip costs as much.
inline constexpr std::size_t least_named_image = 256u << 10;

using image_key = sha256_digest;
using image_name = std::array<std::uint8_t, 32>;
using image_proof = std::array<std::uint8_t, 32>;
/// Part of the server's greeting: random, never used twice.
using image_challenge = std::array<std::byte, 32>;

/// Hashes an image as it travels (module_image::encoded()), piece by piece.
class image_hasher {
 public:
  image_hasher();
  void update(std::span<const std::byte> piece) { hasher_.update(piece); }
  /// The hasher must not be used afterwards.
  image_key finish() { return hasher_.finish(); }

 private:
  sha256_hasher hasher_;
};

image_key key_of(std::span<const std::byte> image);

image_name name_of(const image_key& key);
image_proof proof_of(const image_key& key, const image_challenge& challenge);

}  // namespace outboard::marshal
