// Fetching as "Texture Fetching" of the CUDA programming guide says: filter weights have 8 fractional bits,
// everything else is computed more precisely than a float, then rounded once.
#include "ptx/run/texture.hh"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>

namespace outboard::ptx {
namespace {

constexpr std::int64_t outside = -1;
constexpr std::int64_t fraction = 256;  // weights: 1.8 fixed point

float as_float(std::uint32_t bits) { return std::bit_cast<float>(bits); }
std::uint32_t as_bits(float f) { return std::bit_cast<std::uint32_t>(f); }

double srgb_to_linear(double c) { return c <= 0.04045 ? c / 12.92 : std::pow((c + 0.055) / 1.055, 2.4); }

/// The texel that index `i` of `n` means under an address mode.
std::int64_t address(std::int64_t i, std::int64_t n, address_mode mode) {
  if (i >= 0 && i < n) return i;
  switch (mode) {
    case address_mode::wrap:
      return (i % n + n) % n;
    case address_mode::border:
      return outside;
    case address_mode::mirror: {
      const std::int64_t within = (i % (2 * n) + 2 * n) % (2 * n);
      return within < n ? within : 2 * n - 1 - within;
    }
    default:
      return i < 0 ? 0 : n - 1;
  }
}

/// A coordinate in texels, by whole periods (one wrapped, two mirrored images) or from far outside brought
/// near: nothing overflows.
double in_texels(float x, std::uint32_t n, bool normalized, address_mode mode) {
  double u = x;
  if (normalized) {
    if (mode == address_mode::wrap) {
      u -= std::floor(u);
    } else if (mode == address_mode::mirror) {
      u -= 2 * std::floor(u / 2);
    }
    u *= n;
  }
  if (!(u >= -2.0)) return std::isnan(u) ? 0.0 : -2.0;
  return std::min(u, 2.0 * n + 2.0);
}

/// One dimension of a filter: two neighbours and the weight of the second, in 256ths.
struct neighbours {
  std::int64_t first = 0, second = 0;
  std::int64_t weight = 0;
};

neighbours around(double u) {
  const auto fixed = static_cast<std::int64_t>(std::floor((u - 0.5) * fraction + 0.5));
  const std::int64_t first = fixed >> 8;
  return {first, first + 1, fixed & (fraction - 1)};
}

struct components {
  std::array<double, 4> value{};
};

/// 256ths of each corner; a set bit of the index is the second neighbour of x, y, z. They are whole and sum
/// to 256: planes are split by x, then by y, each half rounded to the outer corner (fitted to an H200, every
/// fraction tried).
std::array<std::int64_t, 8> corner_weights(const std::array<neighbours, 3>& n) {
  const auto share = [](std::int64_t of, std::int64_t weight) {
    return (of * weight + fraction / 2) / fraction;
  };
  std::array<std::int64_t, 8> w{};
  for (std::size_t z = 0; z < 2; ++z) {
    const std::int64_t plane = z != 0 ? n[2].weight : fraction - n[2].weight;
    const std::int64_t right = share(plane, n[0].weight), left = plane - right;
    w[4 * z + 3] = share(right, n[1].weight);
    w[4 * z + 1] = right - w[4 * z + 3];
    w[4 * z] = share(left, fraction - n[1].weight);
    w[4 * z + 2] = left - w[4 * z];
  }
  return w;
}

/// Reads texels of one level of a texture.
class reader {
 public:
  reader(const texture& t, const image_level& level) : t_(t), level_(level) {}

  /// Components as they are stored, sign-extended.
  texel_bits raw(std::int64_t x, std::int64_t y, std::int64_t z) const {
    texel_bits out{0, 0, 0, integers() ? 1u : as_bits(1.0f)};
    const image& m = t_.memory;
    const char* p = level_.data + static_cast<std::uint64_t>(z) * level_.slice +
                    static_cast<std::uint64_t>(y) * level_.pitch +
                    static_cast<std::uint64_t>(x) * m.texel_bytes();
    for (std::uint32_t c = 0; c < m.channels; ++c) out[c] = component(p + c * bytes_of(m.format), c);
    return out;
  }
  texel_bits at(std::int64_t x, std::int64_t y, std::int64_t z) const {
    if (x == outside || y == outside || z == outside) return border();
    return raw(x, y, z);
  }
  texel_bits border() const {
    texel_bits out{};
    if (t_.memory.in_memory) return out;
    for (std::size_t c = 0; c < 4; ++c) {
      out[c] = integers() ? static_cast<std::uint32_t>(static_cast<std::int64_t>(t_.how.border[c]))
                          : as_bits(t_.how.border[c]);
    }
    return out;
  }
  bool integers() const { return t_.how.gives_integers(t_.memory.format); }

 private:
  std::uint32_t component(const char* p, std::uint32_t channel) const {
    const auto read = [&]<class T>(T) {
      T v;
      std::memcpy(&v, p, sizeof v);
      return v;
    };
    const auto scaled = [&](double v, double most) {
      double f = std::max(v / most, -1.0);
      if (t_.how.srgb && t_.memory.format == texel::u8 && channel < 3) f = srgb_to_linear(f);
      return as_bits(static_cast<float>(f));
    };
    const bool whole = integers();
    switch (t_.memory.format) {
      case texel::u8:
        return whole ? read(std::uint8_t{}) : scaled(read(std::uint8_t{}), 255);
      case texel::s8:
        return whole ? static_cast<std::uint32_t>(std::int32_t{read(std::int8_t{})})
                     : scaled(read(std::int8_t{}), 127);
      case texel::u16:
        return whole ? read(std::uint16_t{}) : scaled(read(std::uint16_t{}), 65535);
      case texel::s16:
        return whole ? static_cast<std::uint32_t>(std::int32_t{read(std::int16_t{})})
                     : scaled(read(std::int16_t{}), 32767);
      case texel::f16:
        return half_to_float_bits(read(std::uint16_t{}));
      default:
        return read(std::uint32_t{});
    }
  }

  const texture& t_;
  const image_level& level_;
};

int dimensions_of(geometry g) {
  return g == geometry::d1 || g == geometry::a1d ? 1 : g == geometry::d3 ? 3 : 2;
}
bool has_layers(geometry g) { return g == geometry::a1d || g == geometry::a2d || g == geometry::acube; }
bool is_cube(geometry g) { return g == geometry::cube || g == geometry::acube; }

/// A direction as face and place on it, both from 0 to 1 (programming guide, "Cubemap Textures").
struct cube_place {
  std::uint32_t face = 0;
  float s = 0, t = 0;
};

cube_place cube_face(float x, float y, float z) {
  const float ax = std::fabs(x), ay = std::fabs(y), az = std::fabs(z);
  float m = az, s = 0, t = 0;
  std::uint32_t face = 0;
  if (ax >= ay && ax >= az) {
    face = std::signbit(x) ? 1 : 0, m = ax;
    s = face ? z : -z, t = -y;
  } else if (ay >= az) {
    face = std::signbit(y) ? 3 : 2, m = ay;
    s = x, t = face == 3 ? -z : z;
  } else {
    face = std::signbit(z) ? 5 : 4;
    s = face == 5 ? -x : x, t = -y;
  }
  if (m == 0) return {face, 0.5f, 0.5f};
  return {face, (s / m + 1) / 2, (t / m + 1) / 2};
}

/// The direction of a place on a face, possibly beyond its edge.
std::array<float, 3> cube_direction(std::uint32_t face, float s, float t) {
  switch (face) {
    case 0:
      return {1, -t, -s};
    case 1:
      return {-1, -t, s};
    case 2:
      return {s, 1, t};
    case 3:
      return {s, -1, -t};
    case 4:
      return {s, -t, 1};
    default:
      return {-s, -t, -1};
  }
}

/// A question brought down to a flat one: coordinates, the slice they lie in, which dimensions are addressed.
struct flat_query {
  std::array<float, 3> at{};
  std::uint32_t slice = 0, face = 0;
  int dimensions = 2;
  bool one_row = false;  ///< a 1D texture without layers
};

flat_query flatten(const texture& t, const texture_query& q) {
  flat_query f;
  f.at = q.at;
  f.dimensions = dimensions_of(q.shape);
  f.one_row = q.shape == geometry::d1;
  const std::uint32_t slices = t.memory.levels.front().depth;
  if (is_cube(q.shape)) {
    const cube_place p = cube_face(q.at[0], q.at[1], q.at[2]);
    f.at = {p.s, p.t, 0};
    f.face = p.face;
    const std::uint32_t cubes = std::max(slices / 6, 1u);
    f.slice = std::min(has_layers(q.shape) ? q.layer : 0, cubes - 1) * 6 + p.face;
  } else if (has_layers(q.shape)) {
    f.slice = std::min(q.layer, slices - 1);
  }
  f.slice = std::min(f.slice, slices - 1);
  return f;
}

class sampler {
 public:
  sampler(const texture& t, const flat_query& q, const image_level& level)
      : t_(t), q_(q), level_(level), from_(t, level) {
    const bool face = t.memory.cube && t.how.seamless;
    for (int d = 0; d < 3; ++d) {
      const auto i = static_cast<std::size_t>(d);
      mode_[i] = t.how.modes[i];
      // Only normalised coordinates wrap; the guide: else the mode is clamp.
      const bool folds = mode_[i] == address_mode::wrap || mode_[i] == address_mode::mirror;
      if (face || (folds && !t.how.normalized)) mode_[i] = address_mode::clamp;
    }
    size_ = {level.width, level.height, q.dimensions == 3 ? level.depth : 1};
  }

  texel_bits nearest() const {
    std::array<std::int64_t, 3> i{0, 0, static_cast<std::int64_t>(q_.slice)};
    for (std::size_t d = 0; d < static_cast<std::size_t>(q_.dimensions); ++d)
      i[d] = address(static_cast<std::int64_t>(std::floor(coordinate(d))), size_[d], mode_[d]);
    return from_.at(i[0], i[1], i[2]);
  }

  components linear() const {
    std::array<neighbours, 3> n{};
    const auto used = static_cast<std::size_t>(q_.dimensions);
    const bool crosses_edges = t_.memory.cube && t_.how.seamless;
    for (std::size_t d = 0; d < used; ++d) {
      double u = coordinate(d);
      if (mode_[d] == address_mode::clamp && !crosses_edges) u = std::clamp(u, 0.5, size_[d] - 0.5);
      n[d] = around(u);
    }
    const auto weights = corner_weights(n);
    components sum;
    for (std::uint32_t corner = 0; corner < 1u << used; ++corner) {
      if (weights[corner] == 0) continue;
      std::array<std::int64_t, 3> i{0, 0, 0};
      for (std::size_t d = 0; d < used; ++d) i[d] = corner >> d & 1 ? n[d].second : n[d].first;
      const texel_bits texel = corner_texel(i);
      const double share = static_cast<double>(weights[corner]) / fraction;
      for (std::size_t c = 0; c < 4; ++c) sum.value[c] += share * as_float(texel[c]);
    }
    // Measured on an H200: a 1D texture is filtered as the first of its rows, at 0, halfway to the row above;
    // where the second address mode says so, that one is the border.
    if (q_.one_row && mode_[1] == address_mode::border) {
      const texel_bits border = from_.border();
      for (std::size_t c = 0; c < 4; ++c) sum.value[c] = (sum.value[c] + as_float(border[c])) / 2;
    }
    return sum;
  }

  texel_bits gather(std::uint32_t component) const {
    const neighbours x = around(coordinate(0)), y = around(coordinate(1));
    return {corner_texel({x.first, y.second, 0})[component], corner_texel({x.second, y.second, 0})[component],
            corner_texel({x.second, y.first, 0})[component], corner_texel({x.first, y.first, 0})[component]};
  }

 private:
  double coordinate(std::size_t d) const {
    return in_texels(q_.at[d], size_[d], t_.how.normalized || t_.memory.cube, mode_[d]);
  }

  texel_bits corner_texel(const std::array<std::int64_t, 3>& i) const {
    const std::int64_t n = level_.width;
    const bool beyond = i[0] < 0 || i[1] < 0 || i[0] >= n || i[1] >= n;
    if (t_.memory.cube && t_.how.seamless && beyond) return across_edge(i[0], i[1]);
    std::array<std::int64_t, 3> a{0, 0, static_cast<std::int64_t>(q_.slice)};
    for (std::size_t d = 0; d < static_cast<std::size_t>(q_.dimensions); ++d)
      a[d] = address(i[d], size_[d], mode_[d]);
    return from_.at(a[0], a[1], a[2]);
  }

  /// The texel of the neighbouring face that lies where this face goes on.
  texel_bits across_edge(std::int64_t x, std::int64_t y) const {
    const auto n = static_cast<float>(level_.width);
    const float s = (static_cast<float>(x) + 0.5f) / n * 2 - 1,
                t = (static_cast<float>(y) + 0.5f) / n * 2 - 1;
    const auto d = cube_direction(q_.face, s, t);
    const cube_place p = cube_face(d[0], d[1], d[2]);
    const auto place = [&](float c) {
      return std::clamp<std::int64_t>(static_cast<std::int64_t>(std::floor(c * n)), 0, level_.width - 1);
    };
    return from_.at(place(p.s), place(p.t), q_.slice - q_.face + p.face);
  }

  const texture& t_;
  const flat_query& q_;
  const image_level& level_;
  reader from_;
  std::array<address_mode, 3> mode_{};
  std::array<std::uint32_t, 3> size_{};
};

/// The level of detail that gradients mean (as in graphics: the longer of the two, in texels).
float level_of(const texture& t, const texture_query& q) {
  if (!q.has_gradient) return q.level;
  const image_level& base = t.memory.levels.front();
  const double size[3] = {double(base.width), double(base.height), double(base.depth)};
  double longest = 0;
  for (std::size_t v = 0; v < 2; ++v) {
    double squares = 0;
    for (std::size_t d = 0; d < static_cast<std::size_t>(dimensions_of(q.shape)); ++d) {
      const double texels = q.gradient[3 * v + d] * (t.how.normalized ? size[d] : 1.0);
      squares += texels * texels;
    }
    longest = std::max(longest, squares);
  }
  return longest > 0 ? static_cast<float>(0.5 * std::log2(longest)) : -1000.0f;
}

components sample_level(const texture& t, const flat_query& f, std::size_t level) {
  const sampler s(t, f, t.memory.levels[level]);
  if (t.how.linear) return s.linear();
  components c;
  const texel_bits bits = s.nearest();
  for (std::size_t i = 0; i < 4; ++i) c.value[i] = as_float(bits[i]);
  return c;
}

texel_bits rounded(const components& c) {
  texel_bits out{};
  for (std::size_t i = 0; i < 4; ++i) out[i] = as_bits(static_cast<float>(c.value[i]));
  return out;
}

texel_bits by_index(const texture& t, const texture_query& q) {
  const image_level& level = t.memory.levels.front();
  const reader from(t, level);
  const std::array<std::uint32_t, 3> size{level.width, level.height, level.depth};
  std::array<std::int64_t, 3> i{0, 0, 0};
  if (has_layers(q.shape)) i[2] = std::min(q.layer, level.depth - 1);
  for (std::size_t d = 0; d < static_cast<std::size_t>(dimensions_of(q.shape)); ++d)
    i[d] = address(q.index[d], size[d], t.memory.in_memory ? address_mode::border : t.how.modes[d]);
  return from.at(i[0], i[1], i[2]);
}

}  // namespace

texel_bits texture_sample(const texture& t, const texture_query& q) {
  if (q.by_index) return by_index(t, q);
  const flat_query f = flatten(t, q);
  const std::size_t last = t.memory.levels.size() - 1;
  std::size_t level = 0;
  double towards_next = 0;
  if (last != 0) {
    const float asked = level_of(t, q) + t.how.bias;
    const float lod = std::clamp(std::clamp(asked, t.how.lowest, std::max(t.how.lowest, t.how.highest)), 0.0f,
                                 static_cast<float>(last));
    if (t.how.between_levels) {
      const auto fixed = static_cast<std::int64_t>(std::floor(double{lod} * fraction + 0.5));
      level = static_cast<std::size_t>(fixed / fraction);
      towards_next = static_cast<double>(fixed % fraction) / fraction;
    } else {
      level = static_cast<std::size_t>(std::floor(lod + 0.5f));
    }
    level = std::min(level, last);
  }
  // Integers are never filtered: the driver refuses such a texture.
  if (t.how.gives_integers(t.memory.format)) return sampler(t, f, t.memory.levels[level]).nearest();
  components c = sample_level(t, f, level);
  if (towards_next != 0 && level < last) {
    const components next = sample_level(t, f, level + 1);
    for (std::size_t i = 0; i < 4; ++i)
      c.value[i] = (1 - towards_next) * c.value[i] + towards_next * next.value[i];
  }
  return rounded(c);
}

texel_bits texture_gather(const texture& t, const texture_query& q, std::uint32_t component) {
  const flat_query f = flatten(t, q);
  return sampler(t, f, t.memory.levels.front()).gather(component);
}

}  // namespace outboard::ptx
