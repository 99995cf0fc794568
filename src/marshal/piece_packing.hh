// Compression of the pieces of large copies, where it makes them faster: each connection finds out by itself
// what its line carries, what compressing costs here and what it saves. A packed piece is its size (32 bits,
// little endian) and one LZ4 block. Not thread safe; one packer for each sender.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace outboard::marshal {

/// When to pack: told what things cost, without a clock of its own.
class packing_policy {
 public:
  using duration = std::chrono::nanoseconds;
  enum class choice { plain, sample, packed };

  /// Of the next piece. `sample`: pack a part of it only, tell sampled(), and ask again.
  choice next(std::size_t size);
  void sampled(std::size_t plain, std::size_t packed, duration took);
  /// A piece of `plain` bytes went as `sent` bytes.
  void went(std::size_t plain, std::size_t sent, duration packing, duration sending);

 private:
  /// Bytes in a time, the last ones weighing most.
  struct pace {
    double bytes = 0, time = 0;
    std::uint64_t count = 0;
    void add(std::size_t more, duration took);
    double per_byte() const { return bytes > 0 ? time / bytes : 0; }
  };

  bool pays() const;
  void rest();

  pace line_;            ///< bytes that travelled
  pace plain_, packed_;  ///< bytes of the program, each way of sending them
  pace effort_;          ///< bytes of the program that were packed
  double left_ = 1;      ///< of a byte, packed
  bool packing_ = false;
  std::uint64_t pause_ = 0, next_pause_ = 8;  ///< pieces until the next sample
};

class piece_packer {
 public:
  /// What travels in place of the piece, until the next call; empty: the piece itself.
  std::span<const std::byte> pack(std::span<const std::byte> piece);
  /// The piece last asked for went as `sent` bytes, in that time.
  void went(std::size_t sent, packing_policy::duration sending);

 private:
  packing_policy::duration pack_into_buffer(std::span<const std::byte> bytes);

  packing_policy policy_;
  std::vector<std::byte> buffer_;  ///< big enough for the largest piece so far
  std::size_t piece_ = 0, packed_ = 0;
  packing_policy::duration packing_{};
};

/// The size of the piece in these bytes, as they say; 0: none could be.
std::uint32_t packed_size(std::span<const std::byte> packed);
/// Fills `piece` exactly. False: these are no bytes of such a piece.
bool unpack_piece(std::span<const std::byte> packed, std::span<std::byte> piece);

}  // namespace outboard::marshal
