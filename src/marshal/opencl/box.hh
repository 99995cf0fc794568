// How far a box of rows in a buffer reaches, and how far an image does: both ends ask this of the same
// numbers, so that neither relies on the other, nor a device on arithmetic that may run over. Pure functions.
#pragma once

#include <array>
#include <cstddef>

#include "api/opencl/headers.hh"

namespace outboard::marshal::opencl {

/// A box of rows in a buffer, its pitches made whole.
struct box {
  std::size_t row = 0, slice = 0;  ///< pitches
  std::size_t first = 0;           ///< the first byte
  std::size_t extent = 0;          ///< from there to behind the last one, gaps included
  std::size_t bytes = 0;           ///< without gaps

  /// False: a null pointer, an empty region, a pitch that is too small, or more than a size can say.
  bool set(const std::size_t* origin, const std::size_t* region, std::size_t row_pitch,
           std::size_t slice_pitch);
};

/// Does a part lie in so many bytes? What is empty may lie at the end.
constexpr bool lies_inside(std::size_t whole, std::size_t offset, std::size_t size) {
  return size <= whole && offset <= whole - size;
}

/// Of an image, as origins and regions count: pixels, rows or layers, slices or layers. 1 where it has none.
std::array<std::size_t, 3> extent_of(const cl_image_desc& shape);
/// False: a null pointer, nothing, or beyond.
bool lies_inside(const std::array<std::size_t, 3>& extent, const std::size_t* origin,
                 const std::size_t* region);

}  // namespace outboard::marshal::opencl
