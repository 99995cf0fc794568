// How the packed bytes of a copied box are cut into frames: both ends cut alike, because a piece is itself a
// box (whole slices, whole rows of one slice, or part of one row). Values; no state.
#pragma once

#include <algorithm>
#include <cstdint>

namespace outboard::marshal {

struct box_extent {
  std::uint64_t width = 0, height = 0, depth = 0;  ///< width in bytes

  bool empty() const { return width == 0 || height == 0 || depth == 0; }
  /// False: the box has more bytes than 64 bits can count.
  bool bytes(std::uint64_t& out) const {
    std::uint64_t slice = 0;
    return !__builtin_mul_overflow(width, height, &slice) && !__builtin_mul_overflow(slice, depth, &out);
  }
};

struct box_piece {
  std::uint64_t x = 0, y = 0, z = 0;  ///< where in the box it begins
  box_extent size;
  std::uint64_t bytes() const { return size.width * size.height * size.depth; }
};

/// The piece that begins at packed byte `offset`, at most `limit` bytes of it. `offset` is the end of an
/// earlier piece with the same limit, or 0, and inside the box.
inline box_piece box_piece_at(const box_extent& box, std::uint64_t offset, std::uint64_t limit) {
  const std::uint64_t slice = box.width * box.height;
  box_piece p;
  p.z = offset / slice;
  p.y = offset % slice / box.width;
  p.x = offset % box.width;
  if (p.x != 0 || box.width > limit) {
    p.size = {std::min(limit, box.width - p.x), 1, 1};
  } else if (p.y != 0 || slice > limit) {
    p.size = {box.width, std::min(limit / box.width, box.height - p.y), 1};
  } else {
    p.size = {box.width, box.height, std::min(limit / slice, box.depth - p.z)};
  }
  return p;
}

}  // namespace outboard::marshal
