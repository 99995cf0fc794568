// mma.sync and wmma.mma: fragments become matrices, are multiplied, and become a fragment again. Products of
// narrow types are exact in single precision and sums are rounded there, one after the other: the ISA
// promises no order.
#include "ptx/lanes/matrix.hh"

#include "ptx/lanes/half.hh"

namespace outboard::ptx::OUTBOARD_LANES {
namespace {

using u16 = std::uint16_t;
using u32 = std::uint32_t;
using u64 = std::uint64_t;
using s32 = std::int32_t;
using s64 = std::int64_t;

LANE_INLINE float e4m3_to_float(u32 v) {
  const float scaled = as_float((v & 0x7f) << 20) * as_float(0x7b800000);  // 2^120
  const u32 body = (v & 0x7f) == 0x7f ? 0x7fc00000 : bits_of(scaled);
  return as_float(body | (v & 0x80) << 24);
}

LANE_INLINE float real_cell(cell kind, u32 v) {
  switch (kind) {
    case cell::f16:
      return half_to_float(v & 0xffff);
    case cell::bf16:
      return bfloat_to_float(v & 0xffff);
    case cell::tf32:
      return as_float(v & 0xffffe000);
    case cell::e4m3:
      return e4m3_to_float(v & 0xff);
    case cell::e5m2:
      return half_to_float((v & 0xff) << 8);
    default:
      return as_float(v);
  }
}

LANE_INLINE s32 integer_cell(cell kind, u32 v) {
  switch (kind) {
    case cell::s8:
      return static_cast<signed char>(v);
    case cell::u8:
      return static_cast<s32>(v & 255);
    case cell::s4:
      return static_cast<s32>(v << 28) >> 28;
    case cell::u4:
      return static_cast<s32>(v & 15);
    case cell::b1:
      return static_cast<s32>(v & 1);
    default:
      return static_cast<s32>(v);
  }
}

template <class T, class F>
LANE_INLINE void gather(const warp* w, const fragment& f, T* to, F value) {
  const u32 bits = 32 / f.cells;
  const u16* position = f.position;
  for (u32 n = 0; n < f.distinct; ++n) {
    const u32* r = from<u32>(w, f.r[n]);
    for (u32 c = 0; c < f.cells; ++c, position += warp_lanes) {
      T v[warp_lanes];
      LANE_LOOP v[l] = value(r[l] >> (c * bits));
      for (int l = 0; l < warp_lanes; ++l) to[position[l]] = v[l];
    }
  }
}

LANE_INLINE void gather_real(const warp* w, const fragment& f, float* to) {
  switch (f.kind) {
#define KIND(k)    \
  case cell::k:    \
    return gather( \
        w, f, to, [](u32 v) __attribute__((always_inline)) { return real_cell(cell::k, v); })
    KIND(f16);
    KIND(bf16);
    KIND(tf32);
    KIND(e4m3);
    KIND(e5m2);
#undef KIND
    default:
      return gather(
          w, f, to, [](u32 v) __attribute__((always_inline)) { return as_float(v); });
  }
}

LANE_INLINE void gather_integer(const warp* w, const fragment& f, s32* to) {
  const cell kind = f.kind;
  gather(
      w, f, to, [=](u32 v) __attribute__((always_inline)) { return integer_cell(kind, v); });
}

template <int N, class T>
LANE_INLINE void multiply_columns(T* d, const T* a, const T* b, int m, int k) {
  for (int i = 0; i < m; ++i) {
    T sum[N];
    for (int j = 0; j < N; ++j) sum[j] = d[i * N + j];
    for (int n = 0; n < k; ++n) {
      const T x = a[i * k + n];
      for (int j = 0; j < N; ++j) sum[j] += x * b[n * N + j];
    }
    for (int j = 0; j < N; ++j) d[i * N + j] = sum[j];
  }
}

template <class T>
LANE_INLINE void multiply_all(const multiply_step& s, T* d, const T* a, const T* b) {
  const int m = static_cast<int>(s.a.rows), n = static_cast<int>(s.b.columns),
            k = static_cast<int>(s.a.columns);
  for (u32 p = 0; p < s.problems; ++p, d += m * n, a += m * k, b += k * n) {
    if (n == 8) {
      multiply_columns<8>(d, a, b, m, k);
    } else if (n == 16) {
      multiply_columns<16>(d, a, b, m, k);
    } else {
      multiply_columns<32>(d, a, b, m, k);
    }
  }
}

const inst* multiply_real(warp* w, const inst* i, const multiply_step& s) {
  alignas(64) float a[max_cells_a], b[max_cells_b], d[max_cells_c];
  gather_real(w, s.a, a);
  gather_real(w, s.b, b);
  gather_real(w, s.c, d);
  multiply_all(s, d, a, b);
  const u16* position = s.d.position;
  for (u32 n = 0; n < s.d.registers; ++n) {
    u32* r = to<u32>(w, s.d.r[n]);
    if (s.d.kind == cell::f16) {
      for (int l = 0; l < warp_lanes; ++l) {
        r[l] = float_to_half(d[position[l]]) | static_cast<u32>(float_to_half(d[position[warp_lanes + l]]))
                                                   << 16;
      }
      position += 2 * warp_lanes;
    } else {
      for (int l = 0; l < warp_lanes; ++l) {
        const float v = d[position[l]];
        r[l] = v != v ? 0x7fffffff : bits_of(v);
      }
      position += warp_lanes;
    }
  }
  return i + 1;
}

const inst* multiply_integer(warp* w, const inst* i, const multiply_step& s) {
  alignas(64) s32 a[max_cells_a], b[max_cells_b], c[max_cells_c];
  gather_integer(w, s.a, a);
  gather_integer(w, s.b, b);
  gather_integer(w, s.c, c);
  const int m = static_cast<int>(s.a.rows), n = static_cast<int>(s.b.columns),
            k = static_cast<int>(s.a.columns);
  if (s.how == product::multiply && !s.saturate) {
    multiply_all(s, reinterpret_cast<u32*>(c), reinterpret_cast<const u32*>(a),
                 reinterpret_cast<const u32*>(b));
  } else {
    for (int row = 0; row < m; ++row) {
      for (int column = 0; column < n; ++column) {
        s64 sum = c[row * n + column];
        for (int j = 0; j < k; ++j) {
          const s32 x = a[row * k + j], y = b[j * n + column];
          sum += s.how == product::multiply ? x * y : s.how == product::xor_popc ? x ^ y : x & y;
        }
        if (s.saturate) sum = sum > 0x7fffffff ? 0x7fffffff : sum < -s64{0x80000000} ? -s64{0x80000000} : sum;
        c[row * n + column] = static_cast<s32>(sum);
      }
    }
  }
  for (u32 r = 0; r < s.d.registers; ++r) {
    s32* d = to<s32>(w, s.d.r[r]);
    for (int l = 0; l < warp_lanes; ++l) d[l] = c[s.d.position[r * warp_lanes + static_cast<u32>(l)]];
  }
  return i + 1;
}

LANE_INLINE void gather_double(const warp* w, const fragment& f, double* to) {
  for (u32 n = 0; n < f.distinct; ++n) {
    const double* r = from<double>(w, f.r[n]);
    for (u32 l = 0; l < warp_lanes; ++l) to[f.position[n * warp_lanes + l]] = r[l];
  }
}

const inst* multiply_double(warp* w, const inst* i, const multiply_step& s) {
  double a[16 * 16], b[16 * 8], c[16 * 8];
  gather_double(w, s.a, a);
  gather_double(w, s.b, b);
  gather_double(w, s.c, c);
  const int m = static_cast<int>(s.a.rows), n = static_cast<int>(s.b.columns),
            k = static_cast<int>(s.a.columns);
  for (int row = 0; row < m; ++row) {
    for (int j = 0; j < k; ++j) {
      for (int column = 0; column < n; ++column) {
        c[row * n + column] = __builtin_fma(a[row * k + j], b[j * n + column], c[row * n + column]);
      }
    }
  }
  for (u32 r = 0; r < s.d.registers; ++r) {
    double* d = to<double>(w, s.d.r[r]);
    for (u32 l = 0; l < warp_lanes; ++l) d[l] = c[s.d.position[r * warp_lanes + l]];
  }
  return i + 1;
}

const inst* multiply(warp* w, const inst* i) {
  if (const inst* out = warp_converge(w, i, all_lanes)) return out;
  const auto& s = *reinterpret_cast<const multiply_step*>(i->imm);
  if (s.d.kind == cell::f64) return multiply_double(w, i, s);
  return s.d.kind == cell::s32 ? multiply_integer(w, i, s) : multiply_real(w, i, s);
}

}  // namespace

void fill_matrix(step_table& t) { t.multiply = multiply; }

}  // namespace outboard::ptx::OUTBOARD_LANES
