#include "operands.hh"

#include <bit>
#include <cmath>
#include <cstring>
#include <string>

namespace conformance {
namespace {

using bits = std::uint64_t;

struct generator {
  bits state;
  bits next() {  // splitmix64
    bits z = state += 0x9e3779b97f4a7c15;
    z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9;
    z = (z ^ z >> 27) * 0x94d049bb133111eb;
    return z ^ z >> 31;
  }
};

bits of(float v) { return std::bit_cast<std::uint32_t>(v); }
bits of(double v) { return std::bit_cast<bits>(v); }

std::vector<bits> integer_edges(unsigned width) {
  const bits all = width == 64 ? ~bits{0} : (bits{1} << width) - 1, top = bits{1} << (width - 1);
  std::vector<bits> v = {0,  1,  2,  3,   5,   7,   8,       15,  16,      31,  32,     33,
                         63, 64, 65, 127, 128, 255, top - 1, top, top + 1, all, all - 1};
  for (unsigned half = width / 2; half >= 8; half /= 2) {
    v.push_back((bits{1} << half) - 1), v.push_back(bits{1} << half), v.push_back(bits{1} << (half - 1));
  }
  v.push_back(0x5555555555555555 & all), v.push_back(0xdeadbeefcafef00d & all);
  for (auto& x : v) x &= all;
  return v;
}

std::vector<bits> single_edges() {
  std::vector<bits> v;
  for (const std::uint32_t x : {0u, 1u, 0x00400000u, 0x007fffffu, 0x00800000u, 0x7f7fffffu, 0x7f800000u,
                                0x7fc00000u, 0x7f800001u, 0x3f800001u, 0x3effffffu}) {
    v.push_back(x), v.push_back(x | 0x80000000u);
  }
  for (const float x : {1.0f,
                        -1.0f,
                        0.5f,
                        1.5f,
                        -2.5f,
                        3.5f,
                        3.14159274f,
                        -100.25f,
                        255.5f,
                        65504.0f,
                        65520.0f,
                        16777217.0f,
                        2147483648.0f,
                        -2147483648.0f,
                        2147483520.0f,
                        4294967296.0f,
                        9223372036854775808.0f,
                        1e-20f,
                        -1e20f,
                        6.1e-5f,
                        2.98e-8f,
                        87.0f,
                        -104.0f,
                        127.5f,
                        -149.5f}) {
    v.push_back(of(x));
  }
  return v;
}

std::vector<bits> double_edges() {
  std::vector<bits> v;
  for (const bits x : {bits{0}, bits{1}, bits{0x000fffffffffffff}, bits{0x0010000000000000},
                       bits{0x7fefffffffffffff}, bits{0x7ff0000000000000}, bits{0x7ff8000000000000},
                       bits{0x7ff0000000000001}, bits{0x3ff0000000000001}, bits{0x3fdfffffffffffff}}) {
    v.push_back(x), v.push_back(x | bits{1} << 63);
  }
  for (const double x : {1.0,
                         -1.0,
                         0.5,
                         1.5,
                         -2.5,
                         3.5,
                         3.141592653589793,
                         1e-310,
                         1e-40,
                         -1e-45,
                         7e-46,
                         3.4028235677973366e38,
                         1e39,
                         16777217.0,
                         33554433.0,
                         2147483647.5,
                         -2147483648.5,
                         4294967295.5,
                         9007199254740993.0,
                         9223372036854775808.0,
                         18446744073709551615.0,
                         -1e300,
                         1e-300,
                         65519.99,
                         65520.0,
                         5.96e-8}) {
    v.push_back(of(x));
  }
  return v;
}

std::vector<bits> half_edges(bool brain) {
  std::vector<bits> v;
  const std::initializer_list<int> half = {0,      1,      0x03ff, 0x0400, 0x0401, 0x3800,
                                           0x3c00, 0x3c01, 0x3e00, 0x4100, 0x4248, 0x5bff,
                                           0x6400, 0x7bff, 0x7c00, 0x7e00, 0x7c01, 0x2e66};
  const std::initializer_list<int> bfloat = {0,      1,      0x007f, 0x0080, 0x0081, 0x3f00,
                                             0x3f80, 0x3f81, 0x3fc0, 0x4020, 0x4049, 0x4780,
                                             0x4b80, 0x7f7f, 0x7f80, 0x7fc0, 0x7f81, 0x3dcd};
  for (const int x : brain ? bfloat : half)
    v.push_back(static_cast<bits>(x)), v.push_back(static_cast<bits>(x | 0x8000));
  return v;
}

std::vector<bits> edges_of(const operand_kind& o) {
  const std::string& t = o.type;
  if (o.which == values::small) {
    std::vector<bits> v;
    for (int n = 0; n <= 40; ++n) {
      const double x = (n - 16) / 4.0;
      v.push_back(t == "f32" ? of(static_cast<float>(x)) : t == "f64" ? of(x) : static_cast<bits>(n));
    }
    return v;
  }
  if (o.which == values::angle) {
    std::vector<bits> v = {0, 0x80000000, 1, 0x80000001, 0x00800000, 0x7f800000, 0xff800000, 0x7fc00000};
    for (int n = 0; n <= 200; ++n) v.push_back(of(static_cast<float>((n - 100) * 0.0628318)));
    return v;
  }
  if (t == "pred") return {0, 1};
  if (t == "f32") return single_edges();
  if (t == "f64") return double_edges();
  if (t == "f16" || t == "bf16") return half_edges(t == "bf16");
  if (t == "f16x2" || t == "bf16x2") {
    std::vector<bits> v = half_edges(t == "bf16x2");
    for (std::size_t n = v.size(), k = 0; k < n; ++k) v[k] |= v[(k * 7 + 3) % n] << 16 & 0xffff0000;
    return v;
  }
  const unsigned width = bits_of(t);
  return width == 128 ? std::vector<bits>{0} : integer_edges(width < 8 ? 8 : width);
}

/// Any bits; for floating-point types every second value has an everyday size.
bits random_of(const operand_kind& o, generator& g, const std::vector<bits>& edges) {
  const bits r = g.next();
  if (o.which != values::any && o.which != values::no_zero) return edges[r % edges.size()];
  const std::string& t = o.type;
  if (t == "pred") return r >> 63;
  if (r & 1) {
    const double x = (static_cast<double>(g.next() >> 11) * 0x1p-53 - 0.5) *
                     std::exp2(static_cast<double>(r >> 1 & 31) - 12);
    if (t == "f32") return of(static_cast<float>(x));
    if (t == "f64") return of(x);
  }
  const unsigned width = bits_of(t);
  const bits value = g.next();
  return width >= 64 ? value : value & ((bits{1} << width) - 1);
}

}  // namespace

std::vector<std::uint8_t> operands_of(const kernel& k) {
  std::vector<std::vector<bits>> edges;
  std::size_t pairs = 1;
  for (const auto& o : k.in) edges.push_back(edges_of(o)), pairs *= edges.back().size();
  // One operand: its edges, then random ones. Two: each with each. More: random choices among the edges, then
  // others.
  const std::size_t threads = k.in.size() < 2 ? 256 : k.in.size() == 2 ? (k.within.exact() ? 768 : 512) : 768;
  generator g{0x0b0a4d + k.in.size()};
  std::vector<std::uint8_t> bytes(threads * operand_stride);
  for (auto& b : bytes) b = static_cast<std::uint8_t>(g.next() >> 56);
  for (std::size_t t = 0; t < threads; ++t) {
    // Steps through all pairs evenly when there are more than threads.
    std::size_t which = k.in.size() == 2 && pairs > threads * 3 / 4 ? t * pairs / (threads * 3 / 4) : t;
    const bool by_edges = k.in.size() > 2                               ? t < threads / 2
                          : k.in.size() == 2 && pairs > threads * 3 / 4 ? t < threads * 3 / 4
                                                                        : t < pairs;
    for (std::size_t n = 0; n < k.in.size(); ++n) {
      bits value;
      if (!by_edges) {
        value = random_of(k.in[n], g, edges[n]);
      } else if (k.in.size() > 2) {
        value = edges[n][g.next() % edges[n].size()];
      } else {
        value = edges[n][which % edges[n].size()];
        which /= edges[n].size();
      }
      if (k.in[n].which == values::no_zero && value == 0) value = 1;
      const unsigned width = k.in[n].type == "pred" ? 4 : std::max(1u, bits_of(k.in[n].type) / 8);
      std::memcpy(bytes.data() + t * operand_stride + n * 16, &value, std::min(width, 8u));
    }
  }
  return bytes;
}

std::vector<std::uint8_t> parameter_bytes() {
  std::vector<std::uint8_t> bytes(parameter_block);
  generator g{64};
  for (auto& b : bytes) b = static_cast<std::uint8_t>(g.next() >> 56);
  return bytes;
}

}  // namespace conformance
