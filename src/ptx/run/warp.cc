#include "ptx/run/warp.hh"

#include <algorithm>
#include <bit>
#include <cstring>

#include "ptx/run/builtin.hh"
#include "ptx/run/groups.hh"

namespace outboard::ptx {
namespace {

constexpr std::uint64_t max_frame_bytes = 32u << 20;

void enter_frame(warp* w, frame* f) {
  w->current = f;
  w->base[0] = f->registers.get();
  w->base[1] = f->function->constants.get() - 1;
  w->local_base = f->local_base;
}

/// Makes groups[chosen] the running one.
void select(warp_state& w, std::size_t chosen) {
  group g = w.groups[chosen];
  w.groups.erase(w.groups.begin() + static_cast<std::ptrdiff_t>(chosen));
  w.stop = leave();
  std::erase_if(w.groups, [&](const group& other) {
    if (other.waits != wait::none || other.where != g.where) return false;
    if (other.pc == g.pc) {
      g.mask |= other.mask;
      return true;
    }
    if (other.pc > g.pc && other.pc < w.stop) w.stop = other.pc;
    return false;
  });
  enter_frame(&w, g.where);
  activate(&w, g.mask);
  w.resume = g.pc;
}

/// Nobody can run and nobody waits for the block: lanes that the others wait for have ended, or wait
/// elsewhere. The hardware counts a lane at any warp-wide instruction as arrived, so the lowest one goes on.
bool release_converging(warp_state& w) {
  const group* chosen = nullptr;
  bool complete = false, blocked = false;
  for (const auto& g : w.groups) {
    if (g.waits == wait::barrier) {
      blocked = true;
      continue;
    }
    const std::uint32_t needed = g.member & ~w.exited;
    std::uint32_t here = 0;
    for (const auto& other : w.groups) {
      if (other.waits == g.waits &&
          (g.waits == wait::warp_barrier || (other.pc == g.pc && other.where == g.where))) {
        here |= other.mask;
      }
    }
    complete = (needed & ~here) == 0;
    if (complete || !chosen || g.pc < chosen->pc) chosen = &g;
    if (complete) break;
  }
  if (!chosen || (!complete && blocked)) return false;
  const group model = *chosen;
  if (!complete && model.waits == wait::converge) w.released = model.pc;
  for (auto& g : w.groups) {
    const bool together = complete && model.waits == wait::warp_barrier && (g.mask & model.member);
    if (g.waits == model.waits && (together || (g.pc == model.pc && g.where == model.where)))
      g.waits = wait::none;
  }
  return true;
}

frame* new_frame(warp_state& w, const function_code* f) {
  std::unique_ptr<frame> fresh;
  for (auto n = w.spare.begin(); n != w.spare.end(); ++n) {
    if ((*n)->function == f) {
      fresh = std::move(*n);
      w.spare.erase(n);
      break;
    }
  }
  if (!fresh) {
    // Registers of deep recursion are memory the program does not see: bounded apart from its stack.
    if (!w.frames.empty() && w.frame_bytes + f->register_bytes > max_frame_bytes) return nullptr;
    w.frame_bytes += f->register_bytes;
    fresh = std::make_unique<frame>();
    fresh->function = f;
    fresh->registers = make_lane_memory(f->register_bytes);
    if (!fresh->registers) return nullptr;
  }
  w.frames.push_back(std::move(fresh));
  return w.frames.back().get();
}

void drop_lanes(warp_state& w, frame* f, std::uint32_t lanes) {
  f->lanes &= ~lanes;
  if (f->lanes != 0 || !f->caller) return;
  const auto found =
      std::find_if(w.frames.begin(), w.frames.end(), [&](const auto& p) { return p.get() == f; });
  w.spare.push_back(std::move(*found));
  w.frames.erase(found);
}

// ---- ends and calls

const inst* step_exit(warp* w, const inst*) {
  auto& me = state(w);
  const std::uint32_t mask = w->mask;
  w->exited |= mask;
  block& b = *w->owner;
  b.exited += static_cast<std::uint32_t>(std::popcount(mask));
  for (frame* f = w->current; f;) {
    frame* caller = f->caller;
    drop_lanes(me, f, mask);
    f = caller;
  }
  barriers_recheck(b);  // those who wait no longer wait for these lanes
  return reschedule(w);
}

void copy_value(warp* w, char* to_registers, const char* const from_base[2], const transfer& t, bool in,
                std::uint32_t caller_local, std::uint32_t callee_local) {
  const bool from_register = in ? t.caller_register : t.callee_register;
  const bool to_register = in ? t.callee_register : t.caller_register;
  const std::uint32_t from = in ? t.caller : t.callee, to = in ? t.callee : t.caller;
  const std::uint32_t from_local = in ? caller_local : callee_local,
                      to_local = in ? callee_local : caller_local;
  const std::uint32_t element = std::max(t.bytes, 2u);
  for (std::uint32_t on = w->mask; on != 0; on &= on - 1) {
    const auto l = static_cast<std::uint32_t>(std::countr_zero(on));
    char* local = w->local + l * w->local_stride;
    const char* s = from_register ? from_base[from & 1] + from + l * element : local + from_local + from;
    char* d = to_register ? to_registers + to + l * element : local + to_local + to;
    std::memmove(d, s, t.bytes);
  }
}

const inst* step_ret(warp* w, const inst*) {
  auto& me = state(w);
  frame* f = w->current;
  frame* caller = f->caller;
  const inst* back = f->back;
  const char* base[2] = {f->registers.get(), nullptr};
  for (const auto& t : f->site->out) {
    copy_value(w, caller->registers.get(), base, t, false, caller->local_base, f->local_base);
  }
  drop_lanes(me, f, w->mask);
  if (me.groups.empty()) {
    enter_frame(w, caller);
    return back;
  }
  add_ready(me, back, w->mask, caller);
  return reschedule(w);
}

const inst* step_call(warp* w, const inst* i) {
  auto& me = state(w);
  const auto& site = *reinterpret_cast<const call_site*>(i->imm);
  if (site.provided != builtin::none) return builtin_call(w, i, site);
  const function_code* callee = site.callee;
  const int first = std::countr_zero(w->mask);
  if (!callee) {
    const auto* pointers = reinterpret_cast<const std::uint64_t*>(w->base[site.pointer & 1] + site.pointer);
    const auto& known = w->owner->launch->module->by_address;
    const auto found = known.find(pointers[first]);
    if (found == known.end() || found->second->signature != site.signature || found->second->source->kernel) {
      return warp_fault(w, i, fault::instruction, first, pointers[first]);
    }
    callee = found->second;
    std::uint32_t same = 0;
    for (std::uint32_t on = w->mask; on != 0; on &= on - 1) {
      const int l = std::countr_zero(on);
      if (pointers[l] == pointers[first]) same |= 1u << l;
    }
    if (same != w->mask) {
      add_ready(me, i, w->mask & ~same, w->current);
      activate(w, same);
    }
  }
  frame* caller = w->current;
  const std::uint64_t local_base =
      caller->local_base + std::uint64_t{caller->function->frame.size} + caller->dynamic;
  if (local_base + callee->frame.size > w->local_stride || caller->depth > 20000) {
    return warp_fault(w, i, fault::stack, first, local_base);
  }
  frame* f = new_frame(me, callee);
  if (!f) return warp_fault(w, i, fault::stack, first, local_base);
  f->caller = caller;
  f->site = &site;
  f->back = i + 1;
  f->lanes = w->mask;
  f->local_base = static_cast<std::uint32_t>(local_base);
  f->depth = caller->depth + 1;
  f->dynamic = 0;
  const char* base[2] = {w->base[0], w->base[1]};
  for (const auto& t : site.in) {
    copy_value(w, f->registers.get(), base, t, true, caller->local_base, f->local_base);
  }
  enter_frame(w, f);
  w->stop = leave();
  w->budget -= 8;
  const inst* start = callee->body.data();
  return w->budget < 0 ? warp_yield(w, start) : start;
}

const inst* step_jump_indexed(warp* w, const inst* i) {
  const auto& table = *reinterpret_cast<const jump_table*>(i->imm);
  const auto* index = reinterpret_cast<const std::uint32_t*>(w->base[i->r[1] & 1] + i->r[1]);
  auto& me = state(w);
  for (std::uint32_t on = w->mask; on != 0;) {
    const int first = std::countr_zero(on);
    if (index[first] >= table.targets.size())
      return warp_fault(w, i, fault::instruction, first, index[first]);
    std::uint32_t same = 0;
    for (std::uint32_t rest = on; rest != 0; rest &= rest - 1) {
      const int l = std::countr_zero(rest);
      if (index[l] == index[first]) same |= 1u << l;
    }
    if (same == w->mask) {
      const inst* target = table.targets[index[first]];
      if (target <= i && (w->budget -= 8) < 0) return warp_yield(w, target);
      return target;
    }
    add_ready(me, table.targets[index[first]], same, w->current);
    on &= ~same;
  }
  w->budget -= 8;
  if (w->budget < 0) {
    w->mask = 0;
    return warp_yield(w, nullptr);
  }
  return reschedule(w);
}

const inst* step_nanosleep(warp* w, const inst* i) { return warp_yield(w, i + 1); }
const inst* step_trap(warp* w, const inst* i) {
  return warp_fault(w, i, fault::trap, std::countr_zero(w->mask), 0);
}
const inst* step_breakpoint(warp*, const inst* i) { return i + 1; }

}  // namespace

const inst* warp_split(warp* w, const inst* taken, std::uint32_t taken_mask, const inst* fall) {
  auto& me = state(w);
  const std::uint32_t fall_mask = w->mask & ~taken_mask;
  const bool backward = taken < fall;
  if (backward) {
    add_ready(me, fall, fall_mask, w->current);
    w->stop = std::min(w->stop, fall);
    activate(w, taken_mask);
    w->budget += static_cast<std::int32_t>(taken - fall);
    return w->budget < 0 ? warp_yield(w, taken) : taken;
  }
  add_ready(me, taken, taken_mask, w->current);
  w->stop = std::min(w->stop, taken);
  activate(w, fall_mask);
  return fall;
}

const inst* warp_yield(warp* w, const inst* next) {
  w->happened = event::yield;
  w->resume = next;
  return leave();
}

const inst* warp_converge(warp* w, const inst* i, std::uint32_t member) {
  const std::uint32_t needed = member & ~w->exited;
  if ((needed & ~w->mask) == 0) return nullptr;
  auto& me = state(w);
  if (me.released == i) {  // see release_converging
    me.released = nullptr;
    return nullptr;
  }
  std::uint32_t here = w->mask;
  for (const auto& g : me.groups) {
    if (g.waits == wait::converge && g.pc == i && g.where == w->current) here |= g.mask;
  }
  if ((needed & ~here) == 0) {
    std::erase_if(me.groups, [&](const group& g) {
      return g.waits == wait::converge && g.pc == i && g.where == w->current;
    });
    activate(w, here);
    return nullptr;
  }
  me.groups.push_back({i, w->mask, w->current, wait::converge, member});
  return reschedule(w);
}

bool warp_pick(warp_state& w) {
  for (int attempt = 0; attempt < 2; ++attempt) {
    std::size_t best = w.groups.size();
    for (std::size_t n = 0; n < w.groups.size(); ++n) {
      const auto& g = w.groups[n];
      if (g.waits != wait::none) continue;
      if (best == w.groups.size() || g.where->depth > w.groups[best].where->depth ||
          (g.where->depth == w.groups[best].where->depth && g.pc < w.groups[best].pc)) {
        best = n;
      }
    }
    if (best < w.groups.size()) {
      select(w, best);
      return true;
    }
    if (attempt == 0 && !release_converging(w)) return false;
  }
  return false;
}

bool warp_ready(const warp_state& w) {
  return w.mask != 0 || std::any_of(w.groups.begin(), w.groups.end(),
                                    [](const group& g) { return g.waits != wait::barrier; });
}

bool warp_run(warp_state& w, std::int32_t budget) {
  w.budget = budget;
  if (w.mask == 0 && !warp_pick(w)) return false;
  const inst* ip = w.resume;
  while (true) {
    while (ip < w.stop) ip = ip->run(&w, ip);
    if (ip != leave()) {
      add_ready(w, ip, w.mask, w.current);
      w.happened = event::reschedule;
    }
    if (w.happened == event::fault) return true;
    if (w.happened == event::yield) break;
    w.mask = 0;
    if (!warp_pick(w)) return true;
    ip = w.resume;
  }
  // Out of budget. Another group may be what this one spins for: it goes first next time.
  if (w.mask != 0 && w.groups.empty()) return true;
  if (w.mask != 0) add_ready(w, w.resume, w.mask, w.current);
  w.mask = 0;
  for (std::size_t n = 0; n < w.groups.size(); ++n) {
    if (w.groups[n].waits != wait::none) continue;
    select(w, n);
    break;
  }
  return true;
}

frame* warp_base_frame(warp_state& w, const function_code* kernel) {
  w.groups.clear();
  while (w.frames.size() > 1) w.spare.push_back(std::move(w.frames.back())), w.frames.pop_back();
  if (w.frames.empty() && !new_frame(w, kernel)) return nullptr;
  frame* f = w.frames[0].get();
  f->caller = nullptr, f->site = nullptr, f->back = nullptr, f->depth = 0, f->local_base = 0, f->dynamic = 0;
  return f;
}

void warp_begin(warp_state& w, std::uint32_t lanes) {
  frame* f = w.frames[0].get();
  f->lanes = lanes;
  w.exited = ~lanes;
  w.happened = event::none;
  w.released = nullptr;
  w.stop = leave();
  w.resume = f->function->body.data();
  enter_frame(&w, f);
  activate(&w, lanes);
}

const control_steps& control() {
  static const control_steps all = {
      step_exit,    step_ret,        step_call,         barrier_sync,   barrier_arrive, barrier_warp,
      step_trap,    step_breakpoint, step_jump_indexed, step_nanosleep, block_special,  cluster_arrive,
      cluster_wait, stack_allocate,  stack_save,        stack_restore,  block_in_space};
  return all;
}

}  // namespace outboard::ptx
