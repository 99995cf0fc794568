#include "ptx/run/plain_atomic.hh"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <mutex>

#include "ptx/run/plain_convert.hh"

namespace outboard::ptx {
namespace {

using u16 = std::uint16_t;
using u32 = std::uint32_t;
using u64 = std::uint64_t;

__extension__ using u128 = unsigned __int128;

u16 half(atom what, narrow format, u16 a, u16 b) {
  const double x = narrow_value(a, format), y = narrow_value(b, format);
  narrow_form form;
  form.to = format;
  if (what == atom::add) return static_cast<u16>(narrow_bits(x + y, form));
  if (std::isnan(x)) return std::isnan(y) ? u16{0x7fff} : b;
  if (std::isnan(y)) return a;
  if (x == y) return what == atom::min ? a | b : a & b;  // of zeros, the negative one is the smaller
  return (what == atom::min) == (x < y) ? a : b;
}

template <class T>
T integral(atom what, T a, T b) {
  switch (what) {
    case atom::add:
      return static_cast<T>(static_cast<u64>(a) + static_cast<u64>(b));
    case atom::min:
      return std::min(a, b);
    case atom::max:
      return std::max(a, b);
    case atom::inc:
      return a >= b ? T{0} : static_cast<T>(a + 1);
    case atom::dec:
      return a == 0 || a > b ? b : static_cast<T>(a - 1);
    case atom::and_:
      return a & b;
    case atom::or_:
      return a | b;
    case atom::xor_:
      return a ^ b;
    default:
      return b;
  }
}

u64 combined(atom what, element kind, u64 old, u64 v) {
  const auto pair = [&](narrow format) {
    const u32 low = half(what, format, static_cast<u16>(old), static_cast<u16>(v));
    return low | u64{half(what, format, static_cast<u16>(old >> 16), static_cast<u16>(v >> 16))} << 16;
  };
  switch (kind) {
    case element::f16:
      return half(what, narrow::f16, static_cast<u16>(old), static_cast<u16>(v));
    case element::bf16:
      return half(what, narrow::bf16, static_cast<u16>(old), static_cast<u16>(v));
    case element::f16x2:
      return pair(narrow::f16);
    case element::bf16x2:
      return pair(narrow::bf16);
    case element::f32:
      return std::bit_cast<u32>(std::bit_cast<float>(static_cast<u32>(old)) +
                                std::bit_cast<float>(static_cast<u32>(v)));
    case element::f64:
      return std::bit_cast<u64>(std::bit_cast<double>(old) + std::bit_cast<double>(v));
    case element::s32:
      return static_cast<u32>(integral(what, static_cast<std::int32_t>(old), static_cast<std::int32_t>(v)));
    case element::s64:
      return static_cast<u64>(integral(what, static_cast<std::int64_t>(old), static_cast<std::int64_t>(v)));
    case element::u32:
      return integral(what, static_cast<u32>(old), static_cast<u32>(v));
    default:
      return integral(what, old, v);
  }
}

template <class T>
u64 update(atom what, element kind, char* at, const void* operand) {
  T v;
  std::memcpy(&v, operand, sizeof v);
  auto* p = reinterpret_cast<T*>(at);
  T old = __atomic_load_n(p, __ATOMIC_RELAXED), next;
  do {
    next = static_cast<T>(combined(what, kind, old, v));
  } while (!__atomic_compare_exchange_n(p, &old, next, true, __ATOMIC_SEQ_CST, __ATOMIC_RELAXED));
  return old;
}

#if defined(__x86_64__)
/// By hand: compilers call a library for 16 bytes unless the whole file is for newer processors.
u128 swap_if(u128* at, u128 expected, u128 value) {
  auto low = static_cast<u64>(expected), high = static_cast<u64>(expected >> 64);
  asm volatile("lock cmpxchg16b %0"
               : "+m"(*at), "+a"(low), "+d"(high)
               : "b"(static_cast<u64>(value)), "c"(static_cast<u64>(value >> 64))
               : "cc", "memory");
  return low | u128{high} << 64;
}
#else
/// Atomic among themselves, which is what the ISA asks of accesses of this size.
u128 swap_if(u128* at, u128 expected, u128 value) {
  static std::mutex mutex;
  const std::lock_guard lock(mutex);
  const u128 old = *at;
  if (old == expected) *at = value;
  return old;
}
#endif

}  // namespace

std::uint32_t atomic_width(element kind) {
  switch (kind) {
    case element::f16:
    case element::bf16:
      return 2;
    case element::u64:
    case element::s64:
    case element::f64:
      return 8;
    default:
      return 4;
  }
}

bool atomic_known(atom what, element kind) {
  switch (kind) {
    case element::f16:
    case element::bf16:
    case element::f16x2:
    case element::bf16x2:
      return what == atom::add || what == atom::min || what == atom::max;
    case element::f32:
    case element::f64:
      return what == atom::add;
    case element::s32:
    case element::u32:
    case element::s64:
    case element::u64:
      return what < atom::exch;
    default:
      return false;
  }
}

std::uint64_t atomic_update(atom what, element kind, char* at, const void* operand) {
  switch (atomic_width(kind)) {
    case 2:
      return update<u16>(what, kind, at, operand);
    case 4:
      return update<u32>(what, kind, at, operand);
    default:
      return update<u64>(what, kind, at, operand);
  }
}

const inst* atomic_run(warp* w, const inst* i) {
  const auto& s = *reinterpret_cast<const atomic_step*>(i->imm);
  const u32 width = atomic_width(s.kind), all = width * s.elements;
  for (u32 on = w->mask; on != 0; on &= on - 1) {
    const int l = std::countr_zero(on);
    char* at = lane_place(w, i, s.to, l, all, all, true);
    if (!at) return leave();
    for (u32 n = 0; n < s.elements; ++n) {
      const auto element_at = [&](u32 reference) {
        return w->base[reference & 1] + reference + static_cast<u32>(l) * width;
      };
      const u64 old = atomic_update(s.what, s.kind, at + n * width, element_at(s.value[n]));
      std::memcpy(element_at(s.before[n]), &old, width);
    }
  }
  return i + 1;
}

const inst* wide_atomic_run(warp* w, const inst* i) {
  const auto& s = *reinterpret_cast<const wide_atomic_step*>(i->imm);
  for (u32 on = w->mask; on != 0; on &= on - 1) {
    const int l = std::countr_zero(on);
    char* at = lane_place(w, i, s.to, l, 16, 16, true);
    if (!at) return leave();
    auto* word = reinterpret_cast<u128*>(at);
    const u128 b = lane_value<u128>(w, s.b, l);
    u128 old;
    if (s.compares) {
      old = swap_if(word, b, lane_value<u128>(w, s.c, l));
    } else {
      u128 seen = swap_if(word, 0, 0);
      do {
        old = seen;
        seen = swap_if(word, old, b);
      } while (seen != old);
    }
    set_lane<u128>(w, s.d, l, old);
  }
  return i + 1;
}

const inst* wide_access_run(warp* w, const inst* i) {
  const auto& s = *reinterpret_cast<const wide_access_step*>(i->imm);
  const u32 all = s.elements * s.bytes;
  for (u32 on = w->mask; on != 0; on &= on - 1) {
    const int l = std::countr_zero(on);
    char* at = lane_place(w, i, s.at, l, all, all, s.store);
    if (!at) return leave();
    for (u32 n = 0; n < s.elements; ++n) {
      char* in_register = w->base[s.value[n] & 1] + s.value[n] + static_cast<u32>(l) * s.bytes;
      char* in_memory = at + n * s.bytes;
      std::memcpy(s.store ? in_memory : in_register, s.store ? in_register : in_memory, s.bytes);
    }
  }
  return i + 1;
}

const inst* wide_move(warp* w, const inst* i) {
  each_lane(w, [&](int l) {
    if (i->aux == 2) return set_lane<u128>(w, i->r[0], l, lane_value<u128>(w, i->r[1], l));
    if (i->aux == 0) {
      const u128 v = lane_value<u64>(w, i->r[1], l) | u128{lane_value<u64>(w, i->r[2], l)} << 64;
      return set_lane<u128>(w, i->r[0], l, v);
    }
    const u128 v = lane_value<u128>(w, i->r[0], l);
    set_lane<u64>(w, i->r[1], l, static_cast<u64>(v));
    set_lane<u64>(w, i->r[2], l, static_cast<u64>(v >> 64));
  });
  return i + 1;
}

}  // namespace outboard::ptx
