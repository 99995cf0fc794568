// atom and red: lane after lane in ascending order. Shared memory belongs to one block, which one worker runs
// at a time, but generic addresses may lead there too, so every form is atomic.
#include "ptx/lanes/address.hh"
#include "ptx/lanes/half.hh"

namespace outboard::ptx::OUTBOARD_LANES {
namespace {

using u16 = std::uint16_t;
using u32 = std::uint32_t;
using u64 = std::uint64_t;
using s32 = std::int32_t;
using s64 = std::int64_t;

// clang-format off
template <class T> struct word_for { using type = T; };
template <> struct word_for<float> { using type = u32; };
template <> struct word_for<double> { using type = u64; };
template <> struct word_for<s32> { using type = u32; };
template <> struct word_for<s64> { using type = u64; };

struct f_add { template <class T> LANE_INLINE T of(T a, T b) {
  if constexpr (sizeof(T) == 4 && static_cast<T>(0.5) != 0) return a + b == a + b ? a + b : static_cast<T>(as_float(0x7fffffff));
  else if constexpr (static_cast<T>(0.5) != 0) return a + b;
  else return static_cast<T>(static_cast<typename word_for<T>::type>(a) + static_cast<typename word_for<T>::type>(b)); } };
struct f_min { template <class T> LANE_INLINE T of(T a, T b) { return b < a ? b : a; } };
struct f_max { template <class T> LANE_INLINE T of(T a, T b) { return b > a ? b : a; } };
struct f_inc { template <class T> LANE_INLINE T of(T a, T b) { return a >= b ? 0 : a + 1; } };
struct f_dec { template <class T> LANE_INLINE T of(T a, T b) { return a == 0 || a > b ? b : a - 1; } };
struct f_and { template <class T> LANE_INLINE T of(T a, T b) { return a & b; } };
struct f_or { template <class T> LANE_INLINE T of(T a, T b) { return a | b; } };
struct f_xor { template <class T> LANE_INLINE T of(T a, T b) { return a ^ b; } };
struct f_exch { template <class T> LANE_INLINE T of(T, T b) { return b; } };
/// Two halves in one word.
struct f_add_half { LANE_INLINE u32 of(u32 a, u32 b) {
  const u32 low = float_to_half(half_to_float(a & 0xffff) + half_to_float(b & 0xffff));
  return low | static_cast<u32>(float_to_half(half_to_float(a >> 16) + half_to_float(b >> 16))) << 16; } };
struct f_add_half1 { LANE_INLINE u16 of(u16 a, u16 b) { return float_to_half(half_to_float(a) + half_to_float(b)); } };
// clang-format on

LANE_INLINE float flush(float v) { return bits_of(v) & 0x7f800000 ? v : as_float(bits_of(v) & 0x80000000); }

/// Sums of f32 in global memory treat subnormal numbers as zeros, as the ISA says for today's GPUs.
template <where W, class T, class F>
LANE_INLINE T updated(const warp* w, const void* p, T a, T b) {
  if constexpr (W == where::generic && sizeof(T) == 4 && static_cast<T>(0.5) != 0) {
    const auto in_shared = static_cast<u64>(static_cast<const char*>(p) - w->shared);
    if (in_shared >= w->shared_size) return flush(F::of(flush(a), flush(b)));
  }
  return F::of(a, b);
}

/// aux != 0: the old value goes to r[0].
template <where W, class T, class F>
const inst* update(warp* w, const inst* i) {
  using word = typename word_for<T>::type;
  addresses<W> x;
  if (!gather<W, sizeof(T)>(w, i, x, w->write)) {
    if (const inst* out = check_lanes(w, i, x, sizeof(T), true)) return out;
  }
  const T* b = from<T>(w, i->r[1]);
  word* d = to<word>(w, i->r[0]);
  for (u32 on = w->mask; on != 0; on &= on - 1) {
    const int l = __builtin_ctz(on);
    auto* p = reinterpret_cast<word*>(addresses<W>::pointer(x, l));
    const auto next = [&](word old) {
      return __builtin_bit_cast(word, updated<W, T, F>(w, p, __builtin_bit_cast(T, old), b[l]));
    };
    word old = __atomic_load_n(p, __ATOMIC_RELAXED);
    if constexpr (W != where::generic) {  // only one thread at a time uses a block's shared memory
      *p = next(old);
    } else {
      while (!__atomic_compare_exchange_n(p, &old, next(old), true, __ATOMIC_SEQ_CST, __ATOMIC_RELAXED)) {
      }
    }
    if (i->aux) d[l] = old;
  }
  return i + 1;
}

template <where W, class T>
const inst* compare_and_swap(warp* w, const inst* i) {
  addresses<W> x;
  if (!gather<W, sizeof(T)>(w, i, x, w->write)) {
    if (const inst* out = check_lanes(w, i, x, sizeof(T), true)) return out;
  }
  const T *b = from<T>(w, i->r[1]), *c = from<T>(w, i->r[2]);
  T* d = to<T>(w, i->r[0]);
  for (u32 on = w->mask; on != 0; on &= on - 1) {
    const int l = __builtin_ctz(on);
    T old = b[l];
    __atomic_compare_exchange_n(reinterpret_cast<T*>(addresses<W>::pointer(x, l)), &old, c[l], false,
                                __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST);
    if (i->aux) d[l] = old;
  }
  return i + 1;
}

template <where W, class T>
void fill_integer_type(step_table& t, element e) {
  auto& row = t.atomic[static_cast<int>(W)];
  const auto set = [&](atom a, step s) { row[static_cast<int>(a)][static_cast<int>(e)] = s; };
  set(atom::add, update<W, T, f_add>);
  set(atom::min, update<W, T, f_min>);
  set(atom::max, update<W, T, f_max>);
}

template <where W, class T>
void fill_bits_type(step_table& t, element e) {
  auto& row = t.atomic[static_cast<int>(W)];
  const auto set = [&](atom a, step s) { row[static_cast<int>(a)][static_cast<int>(e)] = s; };
  set(atom::inc, update<W, T, f_inc>);
  set(atom::dec, update<W, T, f_dec>);
  set(atom::and_, update<W, T, f_and>);
  set(atom::or_, update<W, T, f_or>);
  set(atom::xor_, update<W, T, f_xor>);
  set(atom::exch, update<W, T, f_exch>);
  set(atom::cas, compare_and_swap<W, T>);
}

template <where W>
void fill_space(step_table& t) {
  fill_integer_type<W, u32>(t, element::u32);
  fill_integer_type<W, u64>(t, element::u64);
  fill_integer_type<W, s32>(t, element::s32);
  fill_integer_type<W, s64>(t, element::s64);
  fill_bits_type<W, u32>(t, element::u32);
  fill_bits_type<W, u64>(t, element::u64);
  auto& row = t.atomic[static_cast<int>(W)];
  row[static_cast<int>(atom::cas)][static_cast<int>(element::u16)] = compare_and_swap<W, u16>;
  auto& add = row[static_cast<int>(atom::add)];
  add[static_cast<int>(element::f32)] = update<W, float, f_add>;
  add[static_cast<int>(element::f64)] = update<W, double, f_add>;
  add[static_cast<int>(element::f16x2)] = update<W, u32, f_add_half>;
  add[static_cast<int>(element::f16)] = update<W, u16, f_add_half1>;
}

}  // namespace

void fill_atomic(step_table& t) {
  fill_space<where::generic>(t);
  fill_space<where::shared32>(t);
  fill_space<where::shared64>(t);
}

}  // namespace outboard::ptx::OUTBOARD_LANES
