// Compression of the pieces of large copies, where it makes them faster: each connection finds out by itself
// what its link carries, what compression costs here and what it saves. A packed piece is its size (32 bits,
// little endian) and one LZ4 block. Not thread safe; one packer for each sender.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace outboard::marshal {

/// Decides when to pack. Its caller reports what things cost; it has no clock of its own.
class packing_policy {
 public:
  using duration = std::chrono::nanoseconds;
  enum class choice { plain, sample, packed };

  /// Decides about the next piece. `sample`: pack only a part of it, report it with sampled(), and ask again.
  choice next(std::size_t size);
  void sampled(std::size_t plain, std::size_t packed, duration took);
  /// Reports that a piece of `plain` bytes was sent as `sent` bytes.
  void went(std::size_t plain, std::size_t sent, duration packing, duration sending);

 private:
  /// Bytes per time; the latest pieces weigh most.
  struct pace {
    double bytes = 0, time = 0;
    std::uint64_t count = 0;
    void add(std::size_t more, duration took);
    double per_byte() const { return bytes > 0 ? time / bytes : 0; }
  };

  bool pays() const;
  void rest();

  pace link_;            ///< bytes that were sent
  pace plain_, packed_;  ///< the program's bytes, one for each way of sending them
  pace effort_;          ///< the program's bytes that were packed
  double left_ = 1;      ///< size of a packed byte of the program
  bool packing_ = false;
  std::uint64_t pause_ = 0, next_pause_ = 8;  ///< pieces until the next sample
};

class piece_packer {
 public:
  /// Returns what is sent in place of the piece, valid until the next call; empty: send the piece itself.
  std::span<const std::byte> pack(std::span<const std::byte> piece);
  /// Reports that the last piece was sent as `sent` bytes in that time.
  void went(std::size_t sent, packing_policy::duration sending);

 private:
  packing_policy::duration pack_into_buffer(std::span<const std::byte> bytes);

  packing_policy policy_;
  std::vector<std::byte> buffer_;  ///< large enough for the largest piece so far
  std::size_t piece_ = 0, packed_ = 0;
  packing_policy::duration packing_{};
};

/// Returns the size of the piece that these bytes claim; 0: no such piece is possible.
std::uint32_t packed_size(std::span<const std::byte> packed);
/// Fills `piece` exactly. Returns false if these bytes are not such a piece.
bool unpack_piece(std::span<const std::byte> packed, std::span<std::byte> piece);

}  // namespace outboard::marshal
