#include "frontend/cuda/tables/md2.hh"

#include <algorithm>
#include <cstring>

namespace outboard::frontend::cuda {
namespace {

// RFC 1319, section 3.2: a permutation of 0..255 made from the digits of pi.
constexpr std::uint8_t pi_digits[256] = {
    41,  46,  67,  201, 162, 216, 124, 1,   61,  54,  84,  161, 236, 240, 6,   19,  98,  167, 5,   243,
    192, 199, 115, 140, 152, 147, 43,  217, 188, 76,  130, 202, 30,  155, 87,  60,  253, 212, 224, 22,
    103, 66,  111, 24,  138, 23,  229, 18,  190, 78,  196, 214, 218, 158, 222, 73,  160, 251, 245, 142,
    187, 47,  238, 122, 169, 104, 121, 145, 21,  178, 7,   63,  148, 194, 16,  137, 11,  34,  95,  33,
    128, 127, 93,  154, 90,  144, 50,  39,  53,  62,  204, 231, 191, 247, 151, 3,   255, 25,  48,  179,
    72,  165, 181, 209, 215, 94,  146, 42,  172, 86,  170, 198, 79,  184, 56,  210, 150, 164, 125, 182,
    118, 252, 107, 226, 156, 116, 4,   241, 69,  157, 112, 89,  100, 113, 135, 32,  134, 91,  207, 101,
    230, 45,  168, 2,   27,  96,  37,  173, 174, 176, 185, 246, 28,  70,  97,  105, 52,  64,  126, 15,
    85,  71,  163, 35,  221, 81,  175, 58,  195, 92,  249, 206, 186, 197, 234, 38,  44,  83,  13,  110,
    133, 40,  132, 9,   211, 223, 205, 244, 65,  129, 77,  82,  106, 220, 55,  200, 108, 193, 171, 250,
    36,  225, 123, 8,   12,  189, 177, 74,  120, 136, 149, 139, 227, 99,  232, 109, 233, 203, 213, 254,
    59,  0,   29,  57,  242, 239, 183, 14,  102, 88,  208, 228, 166, 119, 114, 248, 235, 117, 75,  10,
    49,  68,  80,  180, 143, 237, 31,  26,  219, 153, 141, 51,  159, 17,  131, 20};

constexpr std::size_t block = 16;

}  // namespace

void md2::absorb(const std::uint8_t* data) {
  std::uint8_t last = checksum_[block - 1];
  for (std::size_t i = 0; i < block; ++i) last = checksum_[i] ^= pi_digits[data[i] ^ last];

  std::uint8_t x[3 * block];
  for (std::size_t i = 0; i < block; ++i) {
    x[i] = state_[i];
    x[block + i] = data[i];
    x[2 * block + i] = static_cast<std::uint8_t>(state_[i] ^ data[i]);
  }
  std::uint8_t t = 0;
  for (unsigned round = 0; round < 18; ++round) {
    for (std::uint8_t& byte : x) t = byte ^= pi_digits[t];
    t = static_cast<std::uint8_t>(t + round);
  }
  std::copy_n(x, block, state_.begin());
}

void md2::update(std::span<const std::uint8_t> data) {
  for (const std::uint8_t byte : data) {
    pending_[pending_size_++] = byte;
    if (pending_size_ < block) continue;
    absorb(pending_.data());
    pending_size_ = 0;
  }
}

md2_digest md2::finish() {
  const std::size_t missing = block - pending_size_;
  std::fill(pending_.begin() + static_cast<std::ptrdiff_t>(pending_size_), pending_.end(),
            static_cast<std::uint8_t>(missing));
  absorb(pending_.data());
  const auto checksum = checksum_;  // absorbing it changes the original, which no longer matters
  absorb(checksum.data());
  return state_;
}

md2_digest hmac_md2(std::span<const std::uint8_t> key, std::span<const std::uint8_t> message) {
  std::array<std::uint8_t, block> padded{};
  if (key.size() > block) {
    md2 shorter;
    shorter.update(key);
    padded = shorter.finish();
  } else {
    std::copy(key.begin(), key.end(), padded.begin());
  }
  std::array<std::uint8_t, block> inner_key, outer_key;
  for (std::size_t i = 0; i < block; ++i) {
    inner_key[i] = padded[i] ^ 0x36;
    outer_key[i] = padded[i] ^ 0x5c;
  }
  md2 inner;
  inner.update(inner_key);
  inner.update(message);
  const md2_digest digest = inner.finish();
  md2 outer;
  outer.update(outer_key);
  outer.update(digest);
  return outer.finish();
}

}  // namespace outboard::frontend::cuda
