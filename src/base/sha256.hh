// SHA-256 (FIPS 180-4) and HMAC-SHA256 (RFC 2104), for the proof of a token and for content addresses. Small
// code of our own, because it is also in the front-end library, which must not bring OpenSSL into a
// stranger's process. Values; one thread at a time.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>

namespace outboard {

using sha256_digest = std::array<std::byte, 32>;

class sha256_hasher {
 public:
  void update(std::span<const std::byte> data);
  /// The hasher cannot be used afterwards.
  sha256_digest finish();

 private:
  void blocks(const std::byte* data, std::size_t count);

  std::array<std::uint32_t, 8> state_{0x6a09e667, 0xbb67ae85, 0x3c6ef372, 0xa54ff53a,
                                      0x510e527f, 0x9b05688c, 0x1f83d9ab, 0x5be0cd19};
  std::array<std::byte, 64> pending_{};
  std::uint64_t length_ = 0;  ///< bytes so far; the last length_ % 64 of them are in pending_
};

sha256_digest sha256(std::span<const std::byte> data);

sha256_digest hmac_sha256(std::span<const std::byte> key, std::span<const std::byte> message);

/// Compares in a time that does not reveal where the first difference is.
bool equal_in_constant_time(std::span<const std::byte> a, std::span<const std::byte> b);

}  // namespace outboard
