// How far a box of rows reaches in a buffer, and how far an image reaches. Both ends compute this from the
// same numbers, so neither end relies on the other, and no device is given arithmetic that may overflow. Pure
// functions.
#pragma once

#include <array>
#include <cstddef>

#include "api/opencl/headers.hh"

namespace outboard::marshal::opencl {

/// A box of rows in a buffer, with pitches of 0 replaced by their defaults.
struct box {
  std::size_t row = 0, slice = 0;  ///< pitches
  std::size_t first = 0;           ///< the first byte
  std::size_t extent = 0;          ///< from `first` to behind the last byte, gaps included
  std::size_t bytes = 0;           ///< without gaps

  /// Returns false for a null pointer, an empty region, a pitch that is too small, or sizes that overflow.
  bool set(const std::size_t* origin, const std::size_t* region, std::size_t row_pitch,
           std::size_t slice_pitch);
};

/// Does a part lie within so many bytes? An empty part may lie at the end.
constexpr bool lies_inside(std::size_t whole, std::size_t offset, std::size_t size) {
  return size <= whole && offset <= whole - size;
}

/// Returns the extent of an image in the units of origins and regions: pixels, rows or layers, slices or
/// layers. A dimension that the image does not have is 1.
std::array<std::size_t, 3> extent_of(const cl_image_desc& shape);
/// Returns false for a null pointer, an empty region, or one that reaches beyond the extent.
bool lies_inside(const std::array<std::size_t, 3>& extent, const std::size_t* origin,
                 const std::size_t* region);

}  // namespace outboard::marshal::opencl
