// Instructions on textures and surfaces as decode leaves them, and the one step that carries them out, lane
// by lane. Sites are immutable after decode; any thread.
#pragma once

#include <array>
#include <cstdint>

#include "ptx/lanes/machine.hh"
#include "ptx/run/texture.hh"

namespace outboard::ptx {

enum class texture_action : std::uint8_t {
  sample,
  gather,
  query_texture,
  query_surface,
  load,         ///< suld.b
  store,        ///< sust.b
  store_texel,  ///< sust.p
  reduce,       ///< sured.b, sured.p
};
enum class outside_rule : std::uint8_t { trap, clamp, zero };
enum class reduction : std::uint8_t { add, min, max, and_, or_ };
enum class texture_fact : std::uint8_t {
  width,
  height,
  depth,
  data_type,
  channel_order,
  normalized,
  force_unnormalized,
  filter,
  address_mode_0,
  address_mode_1,
  address_mode_2,
  array_size,
  levels,
  samples,
  memory_layout,
};

/// Register references as in inst::r; `coordinates` and `gradient` hold as many as the geometry asks for.
struct texture_site {
  texture_action action = texture_action::sample;
  geometry shape = geometry::d2;
  std::uint32_t handle = 0;
  std::uint32_t layer = 0;
  std::array<std::uint32_t, 3> coordinates{};
  std::array<std::uint32_t, 6> gradient{};
  std::uint32_t level = 0;
  bool layered = false, by_index = false, has_level = false, has_gradient = false;
  int dimensions = 2;
  std::uint32_t component = 0;  ///< of gather
  std::array<std::uint32_t, 4> data{};
  std::uint32_t count = 0;          ///< of data
  std::uint32_t element_bytes = 4;  ///< in memory; registers of bytes have two
  bool halves = false, half_pairs = false;
  bool wants_predicate = false;
  std::uint32_t predicate = 0;  ///< set where the texels are resident: always
  outside_rule outside = outside_rule::trap;
  reduction how = reduction::add;
  bool is_signed = false;
  bool in_texels = false;  ///< x counts texels, not bytes (.p)
  texture_fact fact = texture_fact::width;
};

/// inst::imm leads to the site.
const inst* texture_step(warp* w, const inst* i);

}  // namespace outboard::ptx
