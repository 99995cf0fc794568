#include "marshal/cuda/image_name.hh"

#include <gtest/gtest.h>

#include <vector>

namespace outboard::marshal {
namespace {

std::vector<std::byte> image(std::size_t size) {
  std::vector<std::byte> bytes(size);
  for (std::size_t i = 0; i < size; ++i) bytes[i] = static_cast<std::byte>(i * 7);
  return bytes;
}

TEST(image_name, is_the_same_in_pieces) {
  const auto whole = image(1000);
  image_hasher hasher;
  hasher.update(std::span(whole).first(300));
  hasher.update(std::span(whole).subspan(300));
  EXPECT_EQ(hasher.finish(), key_of(whole));
}

TEST(image_name, differs_with_every_bit) {
  auto bytes = image(64);
  const image_name before = name_of(key_of(bytes));
  for (std::size_t bit = 0; bit < 8 * bytes.size(); ++bit) {
    bytes[bit / 8] ^= std::byte{1} << (bit % 8);
    EXPECT_NE(name_of(key_of(bytes)), before) << bit;
    bytes[bit / 8] ^= std::byte{1} << (bit % 8);
  }
}

TEST(image_name, tells_neither_key_nor_proof) {
  const image_key key = key_of(image(64));
  // No plain hash of the image, which others may publish.
  EXPECT_NE(key, sha256(image(64)));
  const image_name name = name_of(key);
  const auto as_key = std::as_bytes(std::span(name));
  image_key guessed;
  std::ranges::copy(as_key, guessed.begin());
  EXPECT_NE(guessed, key);
  EXPECT_NE(proof_of(guessed, {}), proof_of(key, {}));
}

TEST(image_proof, holds_for_one_challenge) {
  const image_key key = key_of(image(64));
  image_challenge one{}, other{};
  other[31] = std::byte{1};
  EXPECT_EQ(proof_of(key, one), proof_of(key, one));
  EXPECT_NE(proof_of(key, one), proof_of(key, other));
  EXPECT_NE(proof_of(key, one), name_of(key));
}

}  // namespace
}  // namespace outboard::marshal
