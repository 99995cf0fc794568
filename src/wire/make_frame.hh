// A whole frame as one piece, for handshakes and for what is small or rare; what is frequent or large goes as
// parts behind encode_header(). Pure functions.
#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "wire/frame.hh"

namespace outboard::wire {

/// Header and payload; `about.size` becomes the payload's.
std::vector<std::byte> make_frame(frame_header about, std::span<const std::byte> payload = {});
inline std::vector<std::byte> make_frame(frame_kind kind, std::span<const std::byte> payload) {
  return make_frame(frame_header{.kind = kind}, payload);
}

}  // namespace outboard::wire
