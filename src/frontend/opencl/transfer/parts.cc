#include "frontend/opencl/transfer/parts.hh"

#include <algorithm>

namespace outboard::frontend::opencl {
namespace {

using marshal::opencl::place_body;
using marshal::opencl::place_form;

constexpr std::uint64_t as_many_as(std::uint64_t all, std::uint64_t each) { return (all + each - 1) / each; }

}  // namespace

parts::parts(const place_body& whole, std::uint64_t bytes, std::uint64_t most)
    : whole_(whole), bytes_(bytes), step_(most) {
  if (whole.form == place_form::row || whole.form == place_form::shared) {
    count_ = as_many_as(bytes, most);
    return;
  }
  const std::uint64_t rows = whole.region[1], slices = whole.region[2];
  row_ = bytes / (rows * slices);
  if (row_ * rows <= most) {
    slices_ = std::min(slices, most / (row_ * rows));
    step_ = row_ * rows * slices_;
    count_ = as_many_as(slices, slices_);
  } else if (row_ <= most) {
    rows_ = most / row_;
    step_ = row_ * rows_;
    in_slice_ = as_many_as(rows, rows_);
    count_ = in_slice_ * slices;
  } else {
    step_ = bytes, slices_ = slices;
  }
}

std::uint64_t parts::offset(std::uint64_t n) const {
  if (n >= count_) return bytes_;
  if (rows_ == 0) return n * step_;
  return n / in_slice_ * (row_ * whole_.region[1]) + n % in_slice_ * step_;
}

place_body parts::place(std::uint64_t n) const {
  place_body part = whole_;
  if (row_ == 0) {
    part.offset += offset(n);
    part.size = length(n);
  } else if (rows_ == 0) {
    part.origin[2] += n * slices_;
    part.region[2] = std::min(slices_, whole_.region[2] - n * slices_);
  } else {
    const std::uint64_t before = n % in_slice_ * rows_;
    part.origin[2] += n / in_slice_;
    part.region[2] = 1;
    part.origin[1] += before;
    part.region[1] = std::min(rows_, whole_.region[1] - before);
  }
  return part;
}

}  // namespace outboard::frontend::opencl
