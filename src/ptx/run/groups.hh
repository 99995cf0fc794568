// What the files of warp control share: groups of lanes change hands. Included by warp.cc, barrier.cc and
// stack.cc only; a warp belongs to one worker at a time.
#pragma once

#include "ptx/run/warp.hh"

namespace outboard::ptx {

inline constexpr std::uint32_t cluster_barrier = 16;  ///< behind the sixteen that have numbers

inline warp_state& state(warp* w) { return static_cast<warp_state&>(*w); }

inline void activate(warp* w, std::uint32_t mask) {
  w->mask = mask;
  for (int l = 0; l < warp_lanes; ++l) w->lane[l] = mask >> l & 1 ? ~0u : 0u;
}

inline const inst* reschedule(warp* w) {
  w->happened = event::reschedule;
  return leave();
}

inline void add_ready(warp_state& w, const inst* pc, std::uint32_t mask, frame* where) {
  for (auto& g : w.groups) {
    if (g.pc == pc && g.where == where && g.waits == wait::none) {
      g.mask |= mask;
      return;
    }
  }
  w.groups.push_back({pc, mask, where, wait::none, 0});
}

// barrier.cc
const inst* barrier_sync(warp* w, const inst* i);
const inst* barrier_arrive(warp* w, const inst* i);
const inst* barrier_warp(warp* w, const inst* i);
const inst* cluster_arrive(warp* w, const inst* i);
const inst* cluster_wait(warp* w, const inst* i);
/// After lanes have ended: barriers may be complete now.
void barriers_recheck(block& b);

// stack.cc
const inst* stack_allocate(warp* w, const inst* i);
const inst* stack_save(warp* w, const inst* i);
const inst* stack_restore(warp* w, const inst* i);

}  // namespace outboard::ptx
