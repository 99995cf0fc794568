// MD2 (RFC 1319) and HMAC (RFC 2104) over it: broken for every other use, but it is what a CUDA runtime
// checks its driver with. Values, no thread rules.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>

namespace outboard::frontend::cuda {

using md2_digest = std::array<std::uint8_t, 16>;

class md2 {
 public:
  void update(std::span<const std::uint8_t> data);
  /// Ends the message; the object is spent.
  md2_digest finish();

 private:
  void absorb(const std::uint8_t* block);

  std::array<std::uint8_t, 16> state_{}, checksum_{}, pending_{};
  std::size_t pending_size_ = 0;
};

md2_digest hmac_md2(std::span<const std::uint8_t> key, std::span<const std::uint8_t> message);

}  // namespace outboard::frontend::cuda
