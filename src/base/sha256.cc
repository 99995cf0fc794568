#include "base/sha256.hh"

#include <algorithm>
#include <bit>

#include "base/sha256_blocks.hh"

namespace outboard {
namespace {

std::uint32_t load_big_endian(const std::byte* at) {
  std::uint32_t value = 0;
  for (int i = 0; i < 4; ++i) value = value << 8 | std::to_integer<std::uint32_t>(at[i]);
  return value;
}

void store_big_endian(std::byte* at, std::uint64_t value, int bytes) {
  for (int i = bytes - 1; i >= 0; --i, value >>= 8) at[i] = static_cast<std::byte>(value);
}

}  // namespace

void sha256_blocks_portable(sha256_state& state, const std::byte* data, std::size_t count) {
  for (; count > 0; --count, data += 64) {
    std::array<std::uint32_t, 64> w;
    for (std::size_t t = 0; t < 16; ++t) w[t] = load_big_endian(data + 4 * t);
    for (std::size_t t = 16; t < 64; ++t) {
      const std::uint32_t a = w[t - 15], b = w[t - 2];
      w[t] = w[t - 16] + (std::rotr(a, 7) ^ std::rotr(a, 18) ^ a >> 3) + w[t - 7] +
             (std::rotr(b, 17) ^ std::rotr(b, 19) ^ b >> 10);
    }
    auto [a, b, c, d, e, f, g, h] = state;
    for (std::size_t t = 0; t < 64; ++t) {
      const std::uint32_t sum1 = std::rotr(e, 6) ^ std::rotr(e, 11) ^ std::rotr(e, 25);
      const std::uint32_t t1 = h + sum1 + ((e & f) ^ (~e & g)) + sha256_round_constants[t] + w[t];
      const std::uint32_t sum0 = std::rotr(a, 2) ^ std::rotr(a, 13) ^ std::rotr(a, 22);
      const std::uint32_t t2 = sum0 + ((a & b) ^ (a & c) ^ (b & c));
      h = g, g = f, f = e, e = d + t1, d = c, c = b, b = a, a = t1 + t2;
    }
    const sha256_state add{a, b, c, d, e, f, g, h};
    for (std::size_t i = 0; i < 8; ++i) state[i] += add[i];
  }
}

void sha256_hasher::blocks(const std::byte* data, std::size_t count) {
  if (count == 0) return;
  (sha256_has_instructions() ? sha256_blocks_by_instructions : sha256_blocks_portable)(state_, data, count);
}

void sha256_hasher::update(std::span<const std::byte> data) {
  std::size_t held = length_ % 64;
  length_ += data.size();
  if (held > 0) {
    const std::size_t taken = std::min(data.size(), 64 - held);
    std::copy_n(data.begin(), taken, pending_.begin() + static_cast<std::ptrdiff_t>(held));
    data = data.subspan(taken);
    if (held + taken < 64) return;
    blocks(pending_.data(), 1);
  }
  blocks(data.data(), data.size() / 64);
  data = data.last(data.size() % 64);
  std::copy(data.begin(), data.end(), pending_.begin());
}

sha256_digest sha256_hasher::finish() {
  const std::uint64_t bits = length_ * 8;
  std::array<std::byte, 72> tail{std::byte{0x80}};
  // Appends a 1 bit, zeros up to 56 modulo 64, then the length in bits.
  const std::size_t zeros = (119 - length_ % 64) % 64;
  store_big_endian(tail.data() + 1 + zeros, bits, 8);
  update(std::span(tail).first(1 + zeros + 8));
  sha256_digest digest;
  for (std::size_t i = 0; i < 8; ++i) store_big_endian(digest.data() + 4 * i, state_[i], 4);
  return digest;
}

sha256_digest sha256(std::span<const std::byte> data) {
  sha256_hasher hasher;
  hasher.update(data);
  return hasher.finish();
}

sha256_digest hmac_sha256(std::span<const std::byte> key, std::span<const std::byte> message) {
  std::array<std::byte, 64> padded{};
  if (key.size() > padded.size()) {
    const sha256_digest shortened = sha256(key);
    std::copy(shortened.begin(), shortened.end(), padded.begin());
  } else {
    std::copy(key.begin(), key.end(), padded.begin());
  }
  const auto keyed = [&](std::byte pad, std::span<const std::byte> data) {
    std::array<std::byte, 64> mixed;
    for (std::size_t i = 0; i < mixed.size(); ++i) mixed[i] = padded[i] ^ pad;
    sha256_hasher hasher;
    hasher.update(mixed);
    hasher.update(data);
    return hasher.finish();
  };
  return keyed(std::byte{0x5c}, keyed(std::byte{0x36}, message));
}

bool equal_in_constant_time(std::span<const std::byte> a, std::span<const std::byte> b) {
  if (a.size() != b.size()) return false;
  std::byte difference{};
  for (std::size_t i = 0; i < a.size(); ++i) difference |= a[i] ^ b[i];
  return difference == std::byte{};
}

}  // namespace outboard
