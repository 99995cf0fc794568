// What a call of a driver function runs, made from the function's line: the context that it needs, what a
// capture forbids, the first check, then its end. The exported symbols are entries with a trace around them.
// Any thread; called from the C ABI, so nothing may throw.
#pragma once

#include "frontend/cuda/chapters/capture.hh"
#include "frontend/cuda/ends.hh"
#include "frontend/cuda/gate.hh"
#include "frontend/cuda/own_context.hh"
#include "frontend/cuda/remote.hh"

namespace outboard::frontend::cuda {

/// A generated end makes its own checks (remote.hh).
template <api::opcode Op, class... A>
CUresult enter_generated(A... arguments) {
  static_assert(api::function<Op>::about.gate == api::gatekeeper::entry, "`gate` is for hand-written ends");
  if constexpr (may_need_context<Op, A...>) {
    return in_its_context<Op>(
        this_lane(), [&] { return remote<Op>(arguments...); }, arguments...);
  } else {
    return remote<Op>(arguments...);
  }
}

template <api::opcode Op, class End, class... A>
CUresult enter_hand_written(End&& end, A... arguments) {
  lane& own = this_lane();
  return in_its_context<Op>(
      own, [&] { return unless_captured<Op>([&] { return gated<Op>(own, end); }); }, arguments...);
}

}  // namespace outboard::frontend::cuda
