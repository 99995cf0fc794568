// Textures and surfaces as kernels see them: memory with a shape, and how to read it. The owner fills the
// structs and keeps them and their memory until every launch that may use them has ended; reading needs no
// lock. What races there races as on a GPU.
#pragma once

#include <array>
#include <cstdint>
#include <vector>

namespace outboard::ptx {

enum class texel : std::uint8_t { u8, s8, u16, s16, u32, s32, f16, f32 };
enum class address_mode : std::uint8_t { wrap, clamp, mirror, border };

inline std::uint32_t bytes_of(texel t) {
  return t <= texel::s8 ? 1 : t <= texel::s16 || t == texel::f16 ? 2 : 4;
}

/// One mipmap level; sizes in texels, never 0 but for the width of `in_memory`. Layers and faces of a cube
/// lie along `depth`.
struct image_level {
  char* data = nullptr;
  std::uint32_t width = 1, height = 1, depth = 1;
  std::uint64_t pitch = 0, slice = 0;
};

struct image {
  texel format = texel::f32;
  std::uint32_t channels = 1;
  bool layered = false, cube = false;
  bool in_memory = false;           ///< plain memory in a row: what is outside reads as zero
  bool borrowed = false;            ///< the program's own memory: nobody promises that it is there
  std::vector<image_level> levels;  ///< at least one

  std::uint32_t texel_bytes() const { return bytes_of(format) * channels; }
};

struct sampling {
  std::array<address_mode, 3> modes{};
  bool linear = false, between_levels = false;  ///< filters
  bool normalized = false;                      ///< coordinates from 0 to 1
  bool as_integer = false;  ///< integers stay what they are; else they become [0,1] or [-1,1]
  bool srgb = false, seamless = false;
  float bias = 0, lowest = 0, highest = 0;  ///< mipmap levels
  std::array<float, 4> border{};

  bool gives_integers(texel t) const {
    return t == texel::u32 || t == texel::s32 || (as_integer && t < texel::u32);
  }
};

struct texture {
  image memory;
  sampling how;
};

/// Finds what a 64-bit handle of a kernel means. Called from several worker threads while a launch runs.
class texture_source {
 public:
  virtual ~texture_source() = default;
  virtual const texture* find_texture(std::uint64_t handle) const = 0;  ///< nullptr: no such texture
  virtual const image* find_surface(std::uint64_t handle) const = 0;
};

enum class geometry : std::uint8_t { d1, d2, d3, a1d, a2d, cube, acube };

/// One lane's question. Gradients: x, y, z of dPdx, then of dPdy.
struct texture_query {
  geometry shape = geometry::d2;
  std::array<float, 3> at{};
  std::array<std::int32_t, 3> index{};  ///< with `by_index`, instead of `at`
  std::uint32_t layer = 0;
  bool by_index = false, has_gradient = false;
  float level = 0;
  std::array<float, 6> gradient{};
};

/// Bits of four components: floats, or integers where the texture gives those.
using texel_bits = std::array<std::uint32_t, 4>;

texel_bits texture_sample(const texture& t, const texture_query& q);
/// Component 0..3 of the four texels that a linear filter would read: (0,1) (1,1) (1,0) (0,0).
texel_bits texture_gather(const texture& t, const texture_query& q, std::uint32_t component);

/// Where the texel of a surface lies; nullptr: outside. `x` is in bytes.
char* surface_address(const image& s, geometry shape, const std::array<std::int32_t, 3>& at,
                      std::uint32_t layer, std::uint32_t bytes);
/// The nearest place inside, for .clamp.
char* surface_clamped(const image& s, geometry shape, std::array<std::int32_t, 3> at, std::uint32_t layer,
                      std::uint32_t bytes);
/// Writes a texel from 32-bit components, converted to the format (.p).
void surface_put(const image& s, char* to, const texel_bits& value);

std::uint32_t half_to_float_bits(std::uint16_t h);
std::uint16_t float_to_half_bits(float f);

}  // namespace outboard::ptx
