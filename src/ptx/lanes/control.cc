// Branches, guards, predicates, shuffles, votes, and the few steps that need their lane's number or memory.
#include "ptx/lanes/loop.hh"

namespace outboard::ptx::OUTBOARD_LANES {
namespace {

using u16 = std::uint16_t;
using u32 = std::uint32_t;
using u64 = std::uint64_t;
using s32 = std::int32_t;

LANE_INLINE const inst* go(warp* w, const inst* i) {
  const inst* next = i + i->jump;
  if (i->jump <= 0) {
    w->budget += i->jump - 1;
    if (w->budget < 0) return warp_yield(w, next);
  }
  return next;
}

const inst* branch(warp* w, const inst* i) { return go(w, i); }

template <bool Sense>
const inst* branch_on(warp* w, const inst* i) {
  const u32 p = predicate(w, i->r[1]);
  const u32 taken = (Sense ? p : ~p) & w->mask;
  if (taken == w->mask) return go(w, i);
  if (taken == 0) return i + 1;
  return warp_split(w, i + i->jump, taken, i + 1);
}

/// Precedes a guarded instruction: r[0] keeps the mask, and jump leads behind the matching unguard.
template <bool Sense>
const inst* guard(warp* w, const inst* i) {
  const u32 p = predicate(w, i->r[1]);
  const u32 on = (Sense ? p : ~p) & w->mask;
  if (on == 0) return i + i->jump;
  *to<u32>(w, i->r[0]) = w->mask;
  if (on != w->mask) set_mask(w, on);
  return i + 1;
}
const inst* unguard(warp* w, const inst* i) {
  const u32 before = *to<u32>(w, i->r[0]);
  if (before != w->mask) set_mask(w, before);
  return i + 1;
}

template <mix M>
const inst* mix_predicate(warp* w, const inst* i) {
  const u32 a = predicate(w, i->r[1]);
  const u32 b = M == mix::not_ || M == mix::mov ? 0 : predicate(w, i->r[2]);
  set_predicate(w, i->r[0],
                M == mix::and_   ? a & b
                : M == mix::or_  ? a | b
                : M == mix::xor_ ? a ^ b
                : M == mix::not_ ? ~a
                                 : a);
  return i + 1;
}

/// Calls f(lanes, members) for each member mask, because lanes of one warp may name different ones (tiles of
/// a warp). `members` are the lanes of the mask that are here. Returns nullptr, or what the step must return
/// because other lanes must arrive first.
template <class F>
LANE_INLINE const inst* each_team(warp* w, const inst* i, F f) {
  const u32* member = from<u32>(w, i->r[5]);
  u32 common = all_lanes;
  LANE_LOOP common &= member[l];
  if (common == all_lanes && w->mask == all_lanes) {  // nearly always
    f(all_lanes, all_lanes);
    return nullptr;
  }
  u32 awaited = 0;
  for (u32 on = w->mask; on != 0; on &= on - 1) awaited |= member[__builtin_ctz(on)];
  if (const inst* out = warp_converge(w, i, awaited)) return out;
  for (u32 left = w->mask; left != 0;) {
    const u32 mask = member[__builtin_ctz(left)];
    u32 team = 0;
    for (u32 on = left; on != 0; on &= on - 1) team |= member[__builtin_ctz(on)] == mask ? on & (0 - on) : 0;
    f(team, mask & w->mask);
    left &= ~team;
  }
  return nullptr;
}

/// Sets v[l] to what lane l gets; returns the lanes whose source is inside their segment. From the manual,
/// shfl.sync: 0 idx, 1 up, 2 down, 3 bfly.
template <u32 kind, class T>
LANE_INLINE u32 exchange(const T* a, const u32* b, const u32* c, T* v) {
  u32 inside = 0;
  s32 source[warp_lanes];
  LANE_LOOP {
    const s32 lane = l, by = static_cast<s32>(b[l] & 31), segment = static_cast<s32>(c[l] >> 8 & 31);
    const s32 clamp = static_cast<s32>(c[l] & 31), low = lane & segment, high = low | (clamp & ~segment);
    const s32 from = kind == 1   ? lane - by
                     : kind == 2 ? lane + by
                     : kind == 3 ? lane ^ by
                                 : low | (by & ~segment);
    const bool good = kind == 1 ? from >= high : from <= high;
    source[l] = good ? from & 31 : lane;
    inside |= good ? 1u << l : 0u;
  }
  LANE_LOOP v[l] = a[source[l]];
  return inside;
}

/// r: d, predicate (aux bit 8), a, b, c, member mask.
template <class T>
const inst* shuffle(warp* w, const inst* i) {
  if (const inst* out = each_team(w, i, [](u32, u32) {})) return out;
  const T* a = from<T>(w, i->r[2]);
  const u32 *b = from<u32>(w, i->r[3]), *c = from<u32>(w, i->r[4]);
  T v[warp_lanes];
  u32 inside = 0;
  switch (i->aux & 3) {
    case 0:
      inside = exchange<0>(a, b, c, v);
      break;
    case 1:
      inside = exchange<1>(a, b, c, v);
      break;
    case 2:
      inside = exchange<2>(a, b, c, v);
      break;
    default:
      inside = exchange<3>(a, b, c, v);
      break;
  }
  const T* result = v;
  assign(
      w, to<T>(w, i->r[0]), [=](int l) __attribute__((always_inline)) { return result[l]; });
  if (i->aux & 256) set_predicate(w, i->r[1], inside);
  return i + 1;
}

/// r: d, -, predicate, -, -, member mask. Lanes outside the member mask do not vote.
const inst* vote(warp* w, const inst* i) {
  const u32 p = predicate(w, i->r[2]), kind = i->aux & 3;
  u32 bits = 0, ballot[warp_lanes] = {};
  const inst* out = each_team(w, i, [&](u32 team, u32 members) {
    const u32 yes = p & members;
    const bool holds = kind == 0 ? yes == members : kind == 1 ? yes != 0 : yes == members || yes == 0;
    bits |= holds ? team : 0;
    for (u32 on = team; on != 0; on &= on - 1) ballot[__builtin_ctz(on)] = yes;
  });
  if (out) return out;
  if (kind < 3) {
    set_predicate(w, i->r[0], bits);
  } else {
    const u32* result = ballot;
    assign(
        w, to<u32>(w, i->r[0]), [=](int l) __attribute__((always_inline)) { return result[l]; });
  }
  return i + 1;
}

const inst* active_mask(warp* w, const inst* i) {
  const u32 mask = w->mask;
  assign(
      w, to<u32>(w, i->r[0]), [=](int) __attribute__((always_inline)) { return mask; });
  return i + 1;
}

/// r: d, predicate (all; aux bit 8), a, -, -, member mask.
template <class T, bool All>
const inst* match(warp* w, const inst* i) {
  const T* a = from<T>(w, i->r[2]);
  u32 v[warp_lanes] = {}, agreed = 0;
  const inst* out = each_team(w, i, [&](u32 team, u32 members) {
    for (u32 on = team; on != 0; on &= on - 1) {
      const int l = __builtin_ctz(on);
      u32 same = 0;
      for (u32 other = members; other != 0; other &= other - 1) {
        same |= a[__builtin_ctz(other)] == a[l] ? other & (0 - other) : 0;
      }
      agreed |= same == members ? 1u << l : 0;
      v[l] = All && same != members ? 0 : same;
    }
  });
  if (out) return out;
  const u32* result = v;
  assign(
      w, to<u32>(w, i->r[0]), [=](int l) __attribute__((always_inline)) { return result[l]; });
  if (All && (i->aux & 256)) set_predicate(w, i->r[1], agreed);
  return i + 1;
}

template <class T, atom A>
LANE_INLINE T combine(T v, T x) {
  if constexpr (A == atom::add) return static_cast<T>(static_cast<u32>(v) + static_cast<u32>(x));
  if constexpr (A == atom::min) return x < v ? x : v;
  if constexpr (A == atom::max) return x > v ? x : v;
  if constexpr (A == atom::and_) return v & x;
  if constexpr (A == atom::or_) return v | x;
  return v ^ x;
}

template <class T, atom A>
const inst* reduce(warp* w, const inst* i) {
  const T* a = from<T>(w, i->r[2]);
  T v[warp_lanes] = {};
  const inst* out = each_team(w, i, [&](u32 team, u32 members) {
    if (members == 0) members = team;
    T sum = a[__builtin_ctz(members)];
    for (u32 on = members & (members - 1); on != 0; on &= on - 1)
      sum = combine<T, A>(sum, a[__builtin_ctz(on)]);
    for (u32 on = team; on != 0; on &= on - 1) v[__builtin_ctz(on)] = sum;
  });
  if (out) return out;
  const T* result = v;
  assign(
      w, to<T>(w, i->r[0]), [=](int l) __attribute__((always_inline)) { return result[l]; });
  return i + 1;
}

const inst* thread_index(warp* w, const inst* i) {
  const u32* a = w->tid[i->aux];
  assign(
      w, to<u32>(w, i->r[0]), [=](int l) __attribute__((always_inline)) { return a[l]; });
  return i + 1;
}

const inst* lanes_special(warp* w, const inst* i) {
  const u32 kind = i->aux;
  assign(
      w, to<u32>(w, i->r[0]), [=](int l) __attribute__((always_inline)) {
        const u32 self = 1u << l, below = self - 1;
        return kind == 0   ? static_cast<u32>(l)
               : kind == 1 ? below
               : kind == 2 ? below | self
               : kind == 3 ? ~(below | self)
               : kind == 4 ? ~below
                           : self;
      });
  return i + 1;
}

template <bool Add>
const inst* lane_base(warp* w, const inst* i) {
  const u64* a = from<u64>(w, i->r[1]);
  const u64 start = reinterpret_cast<u64>(w->local), stride = w->local_stride;
  const auto imm = static_cast<u64>(i->imm);
  assign(
      w, to<u64>(w, i->r[0]), [=](int l) __attribute__((always_inline)) {
        const u64 base = start + static_cast<u64>(l) * stride;
        return (Add ? a[l] + base : a[l] - base) + imm;
      });
  return i + 1;
}

template <bool Add>
const inst* shared_base(warp* w, const inst* i) {
  const u64* a = from<u64>(w, i->r[1]);
  const u64 base = reinterpret_cast<u64>(w->shared) + static_cast<u64>(i->imm);
  assign(
      w, to<u64>(w, i->r[0]), [=](int l) __attribute__((always_inline)) {
        return Add ? a[l] + base : a[l] - base;
      });
  return i + 1;
}

const inst* parameter_address(warp* w, const inst* i) {
  const u64 v = reinterpret_cast<u64>(w->parameters) + static_cast<u64>(i->imm);
  assign(
      w, to<u64>(w, i->r[0]), [=](int) __attribute__((always_inline)) { return v; });
  return i + 1;
}

const inst* local_address(warp* w, const inst* i) {
  const u64 v = w->local_base + static_cast<u64>(i->imm);
  if (i->aux == 4) {
    assign(
        w, to<u32>(w, i->r[0]), [=](int) __attribute__((always_inline)) { return static_cast<u32>(v); });
  } else {
    assign(
        w, to<u64>(w, i->r[0]), [=](int) __attribute__((always_inline)) { return v; });
  }
  return i + 1;
}

/// aux: 0 shared, 1 local, 2 neither (global).
const inst* in_range(warp* w, const inst* i) {
  const u64* a = from<u64>(w, i->r[1]);
  const u64 shared = reinterpret_cast<u64>(w->shared), local = reinterpret_cast<u64>(w->local);
  const u64 shared_size = w->shared_size, local_size = w->local_stride * warp_lanes;
  u32 bits = 0;
  for (int l = 0; l < warp_lanes; ++l) {
    const bool s = a[l] - shared < shared_size, k = a[l] - local < local_size;
    const bool yes = i->aux == 0 ? s : i->aux == 1 ? k : !s && !k;
    bits |= yes ? 1u << l : 0u;
  }
  set_predicate(w, i->r[0], bits);
  return i + 1;
}

const inst* fence(warp*, const inst* i) {
  __atomic_thread_fence(__ATOMIC_SEQ_CST);
  return i + 1;
}

/// mov.b32 d, {a, b}: r[0] = d, r[1..] the parts, lowest first; imm = parts, aux = bytes of one.
template <class D, class P>
LANE_INLINE void pack_as(warp* w, const inst* i) {
  alignas(64) D v[warp_lanes] = {};
  for (int n = 0; n < i->imm; ++n) {
    const P* part = from<P>(w, i->r[1 + n]);
    const int by = n * static_cast<int>(sizeof(P)) * 8;
    LANE_LOOP v[l] |= static_cast<D>(static_cast<D>(part[l]) << by);
  }
  const D* result = v;
  assign(
      w, to<D>(w, i->r[0]), [=](int l) __attribute__((always_inline)) { return result[l]; });
}
const inst* pack(warp* w, const inst* i) {
  if (i->aux == 4) {
    pack_as<u64, u32>(w, i);
  } else if (i->imm == 4) {
    pack_as<u64, u16>(w, i);
  } else {
    pack_as<u32, u16>(w, i);
  }
  return i + 1;
}

/// mov.b32 {a, b}, s: r[0] = s, r[1..] the parts; an unused part refers to scratch.
template <class S, class P>
LANE_INLINE void unpack_as(warp* w, const inst* i) {
  alignas(64) S v[warp_lanes];
  const S* s = from<S>(w, i->r[0]);
  LANE_LOOP v[l] = s[l];  // a part may be the source itself
  const S* value = v;
  for (int n = 0; n < i->imm; ++n) {
    const int by = n * static_cast<int>(sizeof(P)) * 8;
    assign(
        w, to<P>(w, i->r[1 + n]), [=](int l) __attribute__((always_inline)) {
          return static_cast<P>(value[l] >> by);
        });
  }
}
const inst* unpack(warp* w, const inst* i) {
  if (i->aux == 4) {
    unpack_as<u64, u32>(w, i);
  } else if (i->imm == 4) {
    unpack_as<u64, u16>(w, i);
  } else {
    unpack_as<u32, u16>(w, i);
  }
  return i + 1;
}

template <class T>
void fill_reduce(step_table& t, element e) {
  const auto set = [&](atom a, step s) { t.reduce[static_cast<int>(a)][static_cast<int>(e)] = s; };
  set(atom::add, reduce<T, atom::add>);
  set(atom::min, reduce<T, atom::min>);
  set(atom::max, reduce<T, atom::max>);
  set(atom::and_, reduce<T, atom::and_>);
  set(atom::or_, reduce<T, atom::or_>);
  set(atom::xor_, reduce<T, atom::xor_>);
}

}  // namespace

void fill_control(step_table& t) {
  t.branch = branch;
  t.branch_if = branch_on<true>;
  t.branch_unless = branch_on<false>;
  t.guard = guard<true>;
  t.guard_not = guard<false>;
  t.unguard = unguard;
  t.mix_predicate[static_cast<int>(mix::and_)] = mix_predicate<mix::and_>;
  t.mix_predicate[static_cast<int>(mix::or_)] = mix_predicate<mix::or_>;
  t.mix_predicate[static_cast<int>(mix::xor_)] = mix_predicate<mix::xor_>;
  t.mix_predicate[static_cast<int>(mix::not_)] = mix_predicate<mix::not_>;
  t.mix_predicate[static_cast<int>(mix::mov)] = mix_predicate<mix::mov>;
  t.shuffle[1] = shuffle<u16>;
  t.shuffle[2] = shuffle<u32>;
  t.shuffle[3] = shuffle<u64>;
  t.vote = vote;
  t.active_mask = active_mask;
  t.match_any[2] = match<u32, false>;
  t.match_any[3] = match<u64, false>;
  t.match_all[2] = match<u32, true>;
  t.match_all[3] = match<u64, true>;
  fill_reduce<u32>(t, element::u32);
  fill_reduce<s32>(t, element::s32);
  t.thread_index = thread_index;
  t.lanes_special = lanes_special;
  t.add_lane_base = lane_base<true>;
  t.sub_lane_base = lane_base<false>;
  t.add_shared_base = shared_base<true>;
  t.sub_shared_base = shared_base<false>;
  t.parameter_address = parameter_address;
  t.local_address = local_address;
  t.in_range = in_range;
  t.fence = fence;
  t.pack = pack;
  t.unpack = unpack;
}

}  // namespace outboard::ptx::OUTBOARD_LANES
