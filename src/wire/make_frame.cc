#include "wire/make_frame.hh"

#include <algorithm>

namespace outboard::wire {

std::vector<std::byte> make_frame(frame_header about, std::span<const std::byte> payload) {
  about.size = static_cast<std::uint32_t>(payload.size());
  std::vector<std::byte> frame(header_size + payload.size());
  encode_header(about, std::span(frame).first<header_size>());
  std::ranges::copy(payload, frame.begin() + header_size);
  return frame;
}

}  // namespace outboard::wire
