// By what two ends speak of a module image without sending it. The key is a hash of the image and never
// travels; the name is made of it and does. Who knows a name alone can make neither the key nor a proof:
// whoever proves has had the image. Pure functions, any thread.
#pragma once

#include <array>
#include <cstddef>
#include <span>

#include "base/sha256.hh"

namespace outboard::marshal {

/// Images below this always travel: a round trip costs as much.
inline constexpr std::size_t least_named_image = 256u << 10;

using image_key = sha256_digest;
using image_name = std::array<std::uint8_t, 32>;
using image_proof = std::array<std::uint8_t, 32>;
/// The server's greeting has it: random, never used twice.
using image_challenge = std::array<std::byte, 32>;

/// Of an image as it travels (module_image::encoded()), piece by piece.
class image_hasher {
 public:
  image_hasher();
  void update(std::span<const std::byte> piece) { hasher_.update(piece); }
  /// Used up afterwards.
  image_key finish() { return hasher_.finish(); }

 private:
  sha256_hasher hasher_;
};

image_key key_of(std::span<const std::byte> image);

image_name name_of(const image_key& key);
image_proof proof_of(const image_key& key, const image_challenge& challenge);

}  // namespace outboard::marshal
