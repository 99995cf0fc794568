#include "marshal/piece_packing.hh"

#include <lz4.h>

#include <algorithm>
#include <cstring>

namespace outboard::marshal {
namespace {

using std::chrono::steady_clock;

constexpr std::size_t head = sizeof(std::uint32_t);
/// For a smaller piece the round trip costs more than the bytes.
constexpr std::size_t least = 32u << 10;
constexpr std::size_t sample = 64u << 10;
/// The first pieces only fill the socket's buffer, so they say nothing about the link.
constexpr std::uint64_t to_know_the_link = 6;
/// A link of 2.5 GB/s (in ns per byte): on such a link no core compresses fast enough for compression to pay.
constexpr double fast_link = 0.4;
/// Packing must take less than this share of the plain time.
constexpr double margin = 0.9;
/// The number of packed pieces that shows whether packing saves what the sample promised.
constexpr std::uint64_t to_judge = 16;
constexpr std::uint64_t longest_pause = 512;

}  // namespace

void packing_policy::pace::add(std::size_t more, duration took) {
  constexpr double kept = 0.875;
  bytes = bytes * kept + static_cast<double>(more);
  time = time * kept + static_cast<double>(took.count());
  ++count;
}

bool packing_policy::pays() const {
  return effort_.per_byte() + left_ * link_.per_byte() < margin * link_.per_byte();
}

void packing_policy::rest() {
  packing_ = false;
  pause_ = next_pause_;
  next_pause_ = std::min(longest_pause, next_pause_ * 2);
}

packing_policy::choice packing_policy::next(std::size_t size) {
  if (size < least) return choice::plain;
  if (packing_) return choice::packed;
  if (plain_.count < to_know_the_link || link_.per_byte() < fast_link) return choice::plain;
  if (pause_ > 0) {
    --pause_;
    return choice::plain;
  }
  return choice::sample;
}

void packing_policy::sampled(std::size_t plain, std::size_t packed, duration took) {
  effort_ = {};
  effort_.add(plain, took);
  left_ = static_cast<double>(packed) / static_cast<double>(plain);
  if (!pays()) return rest();
  packing_ = true;
  packed_ = {};
}

void packing_policy::went(std::size_t plain, std::size_t sent, duration packing, duration sending) {
  link_.add(sent, sending);
  if (!packing_) return plain_.add(plain, sending);
  packed_.add(plain, packing + sending);
  effort_.add(plain, packing);
  left_ += (static_cast<double>(sent) / static_cast<double>(plain) - left_) / 8;
  if (packed_.count % to_judge != 0) return;
  // If the other end is the bottleneck, packing wins nothing, however slow the link seems to be.
  if (!pays() || packed_.per_byte() > margin * plain_.per_byte()) return rest();
  if (packed_.count == 4 * to_judge) next_pause_ = 8;
}

packing_policy::duration piece_packer::pack_into_buffer(std::span<const std::byte> bytes) {
  const auto began = steady_clock::now();
  const int room = LZ4_compressBound(static_cast<int>(bytes.size()));
  if (buffer_.size() < head + static_cast<std::size_t>(room))
    buffer_.resize(head + static_cast<std::size_t>(room));
  const auto size = static_cast<std::uint32_t>(bytes.size());
  std::memcpy(buffer_.data(), &size, head);
  const int made = LZ4_compress_default(reinterpret_cast<const char*>(bytes.data()),
                                        reinterpret_cast<char*>(buffer_.data() + head),
                                        static_cast<int>(bytes.size()), room);
  packed_ = head + static_cast<std::size_t>(made);
  return steady_clock::now() - began;
}

std::span<const std::byte> piece_packer::pack(std::span<const std::byte> piece) {
  piece_ = piece.size();
  packing_ = {};
  auto choice = policy_.next(piece.size());
  if (choice == packing_policy::choice::sample) {
    const auto part = piece.first(std::min(sample, piece.size()));
    const auto took = pack_into_buffer(part);
    policy_.sampled(part.size(), packed_, took);
    choice = policy_.next(piece.size());
  }
  if (choice != packing_policy::choice::packed) return {};
  packing_ = pack_into_buffer(piece);
  return packed_ < piece.size() ? std::span<const std::byte>(buffer_).first(packed_)
                                : std::span<const std::byte>();
}

void piece_packer::went(std::size_t sent, packing_policy::duration sending) {
  policy_.went(piece_, sent, packing_, sending);
}

std::uint32_t packed_size(std::span<const std::byte> packed) {
  std::uint32_t size = 0;
  if (packed.size() <= head) return 0;
  std::memcpy(&size, packed.data(), head);
  // An LZ4 block expands to 255 times its size at most.
  return size / 255 <= packed.size() ? size : 0;
}

bool unpack_piece(std::span<const std::byte> packed, std::span<std::byte> piece) {
  if (packed_size(packed) != piece.size() || piece.empty()) return false;
  const auto block = packed.subspan(head);
  const int made =
      LZ4_decompress_safe(reinterpret_cast<const char*>(block.data()), reinterpret_cast<char*>(piece.data()),
                          static_cast<int>(block.size()), static_cast<int>(piece.size()));
  return made >= 0 && static_cast<std::size_t>(made) == piece.size();
}

}  // namespace outboard::marshal
