// bar, barrier, bar.warp and barrier.cluster: who has arrived, who waits, who goes on. A block belongs to one
// worker at a time; nothing here is locked.
#include <bit>

#include "ptx/run/groups.hh"

namespace outboard::ptx {
namespace {

std::uint32_t expected_at(const block& b, const barrier_state& s) {
  return s.expected != 0 ? s.expected : b.launch->threads - b.exited;
}

void write_reduction(const barrier_state& s, frame* f, const inst* i, std::uint32_t mask) {
  auto* d = reinterpret_cast<std::uint32_t*>(f->registers.get() + i->r[0]);
  const std::uint32_t kind = i->aux & 6;
  if (kind == 2) {
    for (int l = 0; l < warp_lanes; ++l) {
      if (mask >> l & 1) d[l] = s.count;
    }
  } else if (kind != 0) {
    const bool yes = kind == 4 ? s.all != 0 : s.any != 0;
    *d = (*d & ~mask) | (yes ? mask : 0);
  }
}

void release_barrier(block& b, std::uint32_t number) {
  auto& s = b.barriers[number];
  for (auto& w : b.warps) {
    for (auto& g : w.groups) {
      if (g.waits != wait::barrier || g.member != number) continue;
      write_reduction(s, g.where, g.pc, g.mask);
      g.waits = wait::none;
      ++g.pc;
    }
  }
  if (number == cluster_barrier) b.cluster_phase = !b.cluster_phase;
  s = barrier_state{};
}

/// The barrier an instruction names, counting its arrival; nullptr after a fault.
barrier_state* arrive_at(warp* w, const inst* i, std::uint32_t& number) {
  const int lane = std::countr_zero(w->mask);
  const auto value = [&](std::uint32_t reference) {
    return reinterpret_cast<const std::uint32_t*>(w->base[reference & 1] + reference)[lane];
  };
  number = value(i->r[1]);
  if (number >= 16) {
    warp_fault(w, i, fault::instruction, lane, number);
    return nullptr;
  }
  auto& s = w->owner->barriers[number];
  const bool counted = i->aux & 1;
  // Barriers with a count work on whole warps: a last, partial warp counts for 32.
  s.arrived += counted && (w->mask | w->exited) == all_lanes
                   ? warp_lanes
                   : static_cast<std::uint32_t>(std::popcount(w->mask));
  if (counted) s.expected = value(i->r[2]);
  if (i->aux & 6) {
    const auto p = *reinterpret_cast<const std::uint32_t*>(w->base[i->r[3] & 1] + i->r[3]) & w->mask;
    s.all &= p == w->mask;
    s.any |= p != 0;
    s.count += static_cast<std::uint32_t>(std::popcount(p));
  }
  return &s;
}

}  // namespace

const inst* barrier_sync(warp* w, const inst* i) {
  std::uint32_t number = 0;
  auto* s = arrive_at(w, i, number);
  if (!s) return leave();
  if (s->arrived >= expected_at(*w->owner, *s)) {
    write_reduction(*s, w->current, i, w->mask);
    release_barrier(*w->owner, number);
    auto& me = state(w);
    if (me.groups.empty()) return i + 1;
    add_ready(me, i + 1, w->mask, w->current);
    return reschedule(w);
  }
  state(w).groups.push_back({i, w->mask, w->current, wait::barrier, number});
  return reschedule(w);
}

const inst* barrier_arrive(warp* w, const inst* i) {
  std::uint32_t number = 0;
  auto* s = arrive_at(w, i, number);
  if (!s) return leave();
  if (s->arrived >= expected_at(*w->owner, *s)) {
    release_barrier(*w->owner, number);
    auto& me = state(w);
    if (!me.groups.empty()) {
      add_ready(me, i + 1, w->mask, w->current);
      return reschedule(w);
    }
  }
  return i + 1;
}

const inst* barrier_warp(warp* w, const inst* i) {
  const std::uint32_t member =
      reinterpret_cast<const std::uint32_t*>(w->base[i->r[5] & 1] + i->r[5])[std::countr_zero(w->mask)];
  const std::uint32_t needed = member & ~w->exited;
  if ((needed & ~w->mask) == 0) return i + 1;
  auto& me = state(w);
  std::uint32_t here = w->mask;
  for (const auto& g : me.groups) {
    if (g.waits == wait::warp_barrier) here |= g.mask;
  }
  if ((needed & ~here) != 0) {
    me.groups.push_back({i + 1, w->mask, w->current, wait::warp_barrier, member});
    return reschedule(w);
  }
  for (auto& g : me.groups) {
    if (g.waits == wait::warp_barrier && (g.mask & needed)) g.waits = wait::none;
  }
  add_ready(me, i + 1, w->mask, w->current);
  return reschedule(w);
}

/// Each lane notes in which phase it came; a wait is over once the phase is another.
const inst* cluster_arrive(warp* w, const inst* i) {
  block& b = *w->owner;
  auto& me = state(w);
  me.cluster_phase = (me.cluster_phase & ~w->mask) | (b.cluster_phase ? w->mask : 0);
  auto& s = b.barriers[cluster_barrier];
  s.arrived += static_cast<std::uint32_t>(std::popcount(w->mask));
  if (s.arrived < expected_at(b, s)) return i + 1;
  release_barrier(b, cluster_barrier);
  if (me.groups.empty()) return i + 1;
  add_ready(me, i + 1, w->mask, w->current);
  return reschedule(w);
}

const inst* cluster_wait(warp* w, const inst* i) {
  auto& me = state(w);
  const std::uint32_t early = (w->owner->cluster_phase ? me.cluster_phase : ~me.cluster_phase) & w->mask;
  if (early == 0) return i + 1;
  if (early != w->mask) add_ready(me, i + 1, w->mask & ~early, w->current);
  me.groups.push_back({i, early, w->current, wait::barrier, cluster_barrier});
  return reschedule(w);
}

void barriers_recheck(block& b) {
  for (std::uint32_t n = 0; n < b.barriers.size(); ++n) {
    const auto& s = b.barriers[n];
    if (s.arrived != 0 && s.arrived >= expected_at(b, s)) release_barrier(b, n);
  }
}

}  // namespace outboard::ptx
