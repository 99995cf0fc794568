// Surfaces: texels by place. And halves, which both textures and surfaces hold.
#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>

#include "ptx/run/texture.hh"

namespace outboard::ptx {
namespace {

struct bounds {
  std::int64_t width = 0, height = 1, depth = 1, layers = 1;  // width in bytes
};

bounds bounds_of(const image& s, geometry shape) {
  const image_level& level = s.levels.front();
  bounds b;
  b.width = std::int64_t{level.width} * s.texel_bytes();
  if (shape != geometry::d1 && shape != geometry::a1d) b.height = level.height;
  if (shape == geometry::d3) b.depth = level.depth;
  if (shape != geometry::d3) b.layers = level.depth;
  return b;
}

char* place(const image& s, const std::array<std::int32_t, 3>& at, std::uint32_t layer, bool solid) {
  const image_level& level = s.levels.front();
  const std::uint64_t slice = solid ? static_cast<std::uint64_t>(at[2]) : layer;
  return level.data + slice * level.slice + static_cast<std::uint64_t>(at[1]) * level.pitch + at[0];
}

}  // namespace

char* surface_address(const image& s, geometry shape, const std::array<std::int32_t, 3>& at,
                      std::uint32_t layer, std::uint32_t bytes) {
  const bounds b = bounds_of(s, shape);
  const auto within = [](std::int64_t i, std::int64_t n) { return i >= 0 && i < n; };
  if (at[0] < 0 || at[0] + std::int64_t{bytes} > b.width || !within(at[1], b.height) ||
      !within(at[2], b.depth) || !within(layer, b.layers)) {
    return nullptr;
  }
  return place(s, at, layer, shape == geometry::d3);
}

char* surface_clamped(const image& s, geometry shape, std::array<std::int32_t, 3> at, std::uint32_t layer,
                      std::uint32_t bytes) {
  const bounds b = bounds_of(s, shape);
  const auto nearest = [](std::int64_t i, std::int64_t n) {
    return static_cast<std::int32_t>(std::clamp<std::int64_t>(i, 0, n - 1));
  };
  if (bytes > b.width) return nullptr;
  // The last whole texel of the row.
  const std::int64_t last = b.width - bytes;
  at[0] = static_cast<std::int32_t>(std::clamp<std::int64_t>(at[0], 0, last));
  at[1] = nearest(at[1], b.height), at[2] = nearest(at[2], b.depth);
  layer = static_cast<std::uint32_t>(nearest(layer, b.layers));
  return place(s, at, layer, shape == geometry::d3);
}

void surface_put(const image& s, char* to, const texel_bits& value) {
  const std::uint32_t bytes = bytes_of(s.format);
  for (std::uint32_t c = 0; c < s.channels; ++c) {
    const auto whole = static_cast<std::int32_t>(value[c]);
    std::uint32_t bits = value[c];
    switch (s.format) {
      case texel::u8:
        bits = std::min(value[c], 0xffu);
        break;
      case texel::u16:
        bits = std::min(value[c], 0xffffu);
        break;
      case texel::s8:
        bits = static_cast<std::uint32_t>(std::clamp(whole, -128, 127));
        break;
      case texel::s16:
        bits = static_cast<std::uint32_t>(std::clamp(whole, -32768, 32767));
        break;
      case texel::f16:
        bits = float_to_half_bits(std::bit_cast<float>(value[c]));
        break;
      default:
        break;
    }
    std::memcpy(to + c * bytes, &bits, bytes);
  }
}

std::uint32_t half_to_float_bits(std::uint16_t h) {
  const std::uint32_t sign = static_cast<std::uint32_t>(h & 0x8000) << 16, exponent = h >> 10 & 31,
                      mantissa = h & 0x3ff;
  if (exponent == 31) return sign | 0x7f800000 | mantissa << 13;
  if (exponent != 0) return sign | (exponent + 112) << 23 | mantissa << 13;
  const float tiny = std::ldexp(static_cast<float>(mantissa), -24);
  return sign | std::bit_cast<std::uint32_t>(tiny);
}

std::uint16_t float_to_half_bits(float f) {
  const auto bits = std::bit_cast<std::uint32_t>(f);
  const auto sign = static_cast<std::uint16_t>(bits >> 16 & 0x8000);
  if (std::isnan(f)) return static_cast<std::uint16_t>(sign | 0x7fff);
  const double size = std::fabs(static_cast<double>(f));
  if (size >= 65520.0) return static_cast<std::uint16_t>(sign | 0x7c00);
  int exponent = 0;
  std::frexp(size, &exponent);
  const int unit = std::max(exponent - 11, -24);  // of the last bit that is kept
  const auto units = static_cast<std::uint32_t>(std::nearbyint(std::ldexp(size, -unit)));
  if (units == 0) return sign;
  // The mantissa's leading bit adds one to the exponent, and so does a carry.
  return static_cast<std::uint16_t>(sign | (units + (static_cast<std::uint32_t>(unit + 24) << 10)));
}

}  // namespace outboard::ptx
