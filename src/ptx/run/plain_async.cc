#include "ptx/run/plain_async.hh"

#include <algorithm>
#include <cstring>

#include "ptx/run/plain_atomic.hh"
#include "ptx/run/warp.hh"

namespace outboard::ptx {
namespace {

using u32 = std::uint32_t;
using u64 = std::uint64_t;

/// The 64 bits of an mbarrier. Their layout is nobody's business but ours; a state token is a copy of them.
struct mbarrier {
  u32 expected, pending;  // 20 bits each
  std::int32_t bytes;     // 22 bits, signed: outstanding transactions
  bool phase;

  static constexpr u32 count_mask = 0xfffff;

  static mbarrier from(u64 word) {
    const auto bytes = static_cast<u32>(word >> 40 & 0x3fffff);
    return {static_cast<u32>(word & count_mask), static_cast<u32>(word >> 20 & count_mask),
            static_cast<std::int32_t>(bytes << 10) >> 10, (word >> 63) != 0};
  }
  u64 word() const {
    return u64{expected & count_mask} | u64{pending & count_mask} << 20 |
           u64{static_cast<u32>(bytes) & 0x3fffff} << 40 | u64{phase} << 63;
  }
  void settle() {
    if (pending != 0 || bytes != 0) return;
    phase = !phase;
    pending = expected;
  }
};

u64 load(const char* at) {
  u64 v;
  std::memcpy(&v, at, sizeof v);
  return v;
}
void store(char* at, u64 v) { std::memcpy(at, &v, sizeof v); }

void complete_bytes(char* at, u32 bytes) {
  auto b = mbarrier::from(load(at));
  b.bytes -= static_cast<std::int32_t>(bytes);
  b.settle();
  store(at, b.word());
}

/// Stores what changed; the result's state token, where one is wanted, is of before.
void change(const mbarrier_step& s, warp* w, int l, char* at) {
  const u64 before = load(at);
  auto b = mbarrier::from(before);
  const u32 count = s.count != 0 ? lane_value<u32>(w, s.count, l) : 1;
  switch (s.what) {
    case mbarrier_kind::init:
      b = {count, count, 0, false};
      return store(at, b.word());
    case mbarrier_kind::invalidate:
      return store(at, 0);
    case mbarrier_kind::expect_tx:
      b.bytes += static_cast<std::int32_t>(count);
      return store(at, b.word());
    case mbarrier_kind::complete_tx:
      return complete_bytes(at, count);
    default:
      break;
  }
  const u32 arriving = s.expects ? 1 : count;
  if (s.expects) b.bytes += static_cast<std::int32_t>(count);
  if (s.what == mbarrier_kind::arrive_drop) b.expected -= arriving;
  b.pending -= arriving;
  b.settle();
  store(at, b.word());
  if (s.has_state) set_lane<u64>(w, s.state, l, before);
}

}  // namespace

const inst* mbarrier_run(warp* w, const inst* i) {
  const auto& s = *reinterpret_cast<const mbarrier_step*>(i->imm);
  const bool tests = s.what == mbarrier_kind::test || s.what == mbarrier_kind::test_parity;
  bool any_early = false;
  for (u32 on = w->mask; on != 0; on &= on - 1) {
    const int l = std::countr_zero(on);
    char* at = lane_shared(w, i, s.barrier, l, 8, 8);
    if (!at) return leave();
    if (!tests) {
      change(s, w, l, at);
      continue;
    }
    const bool phase = load(at) >> 63;
    const bool of = s.what == mbarrier_kind::test ? lane_value<u64>(w, s.state, l) >> 63 != 0
                                                  : (lane_value<u32>(w, s.state, l) & 1) != 0;
    set_lane_predicate(w, s.predicate, l, phase != of);
    any_early |= phase == of;
  }
  // Who waits here mostly loops: other warps first, or nothing would change until the budget is used up.
  return any_early && s.patient ? warp_yield(w, i + 1) : i + 1;
}

const inst* mbarrier_pending(warp* w, const inst* i) {
  each_lane(w, [&](int l) {
    set_lane<u32>(w, i->r[0], l, mbarrier::from(lane_value<u64>(w, i->r[1], l)).pending);
  });
  return i + 1;
}

const inst* copy_run(warp* w, const inst* i) {
  const auto& s = *reinterpret_cast<const copy_step*>(i->imm);
  for (u32 on = w->mask; on != 0; on &= on - 1) {
    const int l = std::countr_zero(on);
    u32 size = s.has_size ? lane_value<u32>(w, s.size, l) : s.bytes;
    const bool bulk = s.bytes == 0;
    const u32 align = bulk ? 16 : s.bytes;
    if (bulk && (size & 15)) return warp_fault(w, i, fault::misaligned, l, size);
    if (!bulk) size = std::min(size, s.bytes);
    if (s.has_ignore && lane_predicate(w, s.ignore, l)) size = 0;
    const u32 written = bulk ? size : s.bytes;
    char* to = s.to_shared ? lane_shared(w, i, s.to, l, written, align)
                           : lane_place(w, i, s.to, l, written, align, true);
    if (!to) return leave();
    const char* from = lane_place(w, i, s.from, l, size, align, false);
    if (!from) return leave();
    if (s.reduce == atom::count) {
      std::memmove(to, from, size);
      if (written > size) std::memset(to + size, 0, written - size);
    } else {
      const u32 width = atomic_width(s.kind);
      for (u32 at = 0; at + width <= size; at += width) atomic_update(s.reduce, s.kind, to + at, from + at);
    }
    if (!s.completes) continue;
    char* barrier = lane_shared(w, i, s.barrier, l, 8, 8);
    if (!barrier) return leave();
    complete_bytes(barrier, size);
  }
  return i + 1;
}

const inst* remote_run(warp* w, const inst* i) {
  const auto& s = *reinterpret_cast<const remote_step*>(i->imm);
  const u32 all = s.elements * s.bytes;
  for (u32 on = w->mask; on != 0; on &= on - 1) {
    const int l = std::countr_zero(on);
    char* to = lane_shared(w, i, s.to, l, all, all);
    if (!to) return leave();
    char* barrier = lane_shared(w, i, s.barrier, l, 8, 8);
    if (!barrier) return leave();
    for (u32 n = 0; n < s.elements; ++n) {
      const u64 v = s.bytes == 8 ? lane_value<u64>(w, s.value[n], l) : lane_value<u32>(w, s.value[n], l);
      if (s.reduce == atom::count) {
        std::memcpy(to + n * s.bytes, &v, s.bytes);
      } else {
        atomic_update(s.reduce, s.kind, to + n * s.bytes, &v);
      }
    }
    complete_bytes(barrier, all);
  }
  return i + 1;
}

}  // namespace outboard::ptx
