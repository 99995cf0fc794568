// alloca: memory behind the frame of the running function, as long as it runs. The lanes of a frame share one
// size, the largest that any of them asked for.
#include <algorithm>
#include <bit>

#include "ptx/run/groups.hh"
#include "ptx/run/plain.hh"

namespace outboard::ptx {

/// r[0] = local address of r[1] bytes; aux: alignment.
const inst* stack_allocate(warp* w, const inst* i) {
  frame& f = *w->current;
  const std::uint64_t begin = std::uint64_t{f.local_base} + f.function->frame.size + f.dynamic;
  const std::uint64_t at = (begin + i->aux - 1) & ~std::uint64_t{i->aux - 1};
  std::uint64_t most = 0;
  each_lane(w, [&](int l) { most = std::max(most, lane_value<std::uint64_t>(w, i->r[1], l)); });
  if (at > w->local_stride || w->local_stride - at < most) {
    return warp_fault(w, i, fault::stack, std::countr_zero(w->mask), most);
  }
  f.dynamic = static_cast<std::uint32_t>((at + most + 15) / 16 * 16 - f.local_base - f.function->frame.size);
  each_lane(w, [&](int l) { set_lane<std::uint64_t>(w, i->r[0], l, at); });
  return i + 1;
}

const inst* stack_save(warp* w, const inst* i) {
  each_lane(w, [&](int l) { set_lane<std::uint64_t>(w, i->r[0], l, w->current->dynamic); });
  return i + 1;
}

/// Only when no other lane of the frame may still use what lies above.
const inst* stack_restore(warp* w, const inst* i) {
  frame& f = *w->current;
  std::uint64_t most = 0;
  each_lane(w, [&](int l) { most = std::max(most, lane_value<std::uint64_t>(w, i->r[1], l)); });
  if (w->mask == f.lanes && most < f.dynamic) f.dynamic = static_cast<std::uint32_t>(most);
  return i + 1;
}

}  // namespace outboard::ptx
