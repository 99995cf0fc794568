// How the bytes of a command's place are cut into parts that a device can be given one by one: a row
// anywhere, a box or an image's region between its rows and slices. A value; any thread.
#pragma once

#include <cstdint>

#include "marshal/opencl/bodies.hh"

namespace outboard::frontend::opencl {

class parts {
 public:
  /// `bytes`: of the whole place, without gaps, not 0. Parts of at most `most` each; where a single row has
  /// more, there is one part.
  parts(const marshal::opencl::place_body& whole, std::uint64_t bytes, std::uint64_t most);

  std::uint64_t count() const { return count_; }
  /// In the bytes without gaps, in which parts lie one behind the other. `n` may be count().
  std::uint64_t offset(std::uint64_t n) const;
  std::uint64_t length(std::uint64_t n) const { return offset(n + 1) - offset(n); }
  marshal::opencl::place_body place(std::uint64_t n) const;

 private:
  const marshal::opencl::place_body whole_;
  const std::uint64_t bytes_;
  std::uint64_t count_ = 1;
  std::uint64_t step_;          ///< bytes of a part, but for the last one of a row or a slice
  std::uint64_t row_ = 0;       ///< bytes; 0: the place is one row
  std::uint64_t rows_ = 0;      ///< of each part, which has no more than a slice; 0: parts have whole slices
  std::uint64_t in_slice_ = 0;  ///< parts of each slice
  std::uint64_t slices_ = 0;    ///< of each part
};

}  // namespace outboard::frontend::opencl
