// Blocks: their memory, what is an address to them, their faults, and the loop over their warps.
#include <time.h>

#include <algorithm>
#include <bit>
#include <cstring>

#include "ptx/run/child_grids.hh"
#include "ptx/run/plain.hh"
#include "ptx/run/warp.hh"

namespace outboard::ptx {
namespace {

// About 100 µs of work: short enough that warps spinning on each other get on, long enough to cost nothing.
constexpr std::int32_t warp_budget = 20000;
constexpr std::size_t max_shown = 120;

std::string triple(const dimensions& d) {
  return "(" + std::to_string(d[0]) + "," + std::to_string(d[1]) + "," + std::to_string(d[2]) + ")";
}

std::string hexadecimal(std::uint64_t v) {
  static constexpr char digits[] = "0123456789abcdef";
  std::string s;
  do {
    s.insert(s.begin(), digits[v & 15]);
  } while (v >>= 4);
  return "0x" + s;
}

/// The function whose code holds `i`, and the statement it comes from.
const instruction* statement_at(const code& module, const inst* i, std::string_view& name) {
  for (const auto& f : module.functions) {
    // Compared as numbers: pointers into different arrays have no difference.
    const auto begin = reinterpret_cast<std::uintptr_t>(f.body.data()),
               at = reinterpret_cast<std::uintptr_t>(i);
    if (at < begin || at >= begin + f.body.size() * sizeof(inst)) continue;
    const auto n = (at - begin) / sizeof(inst);
    name = f.name;
    const std::uint32_t statement = f.statement[n];
    return statement < f.source->body.size() ? &f.source->body[statement] : nullptr;
  }
  return nullptr;
}

/// "4 bytes behind the allocation 0x..., 160 bytes" for an access that none allows.
std::string neighbour(const block& b, std::uint64_t address) {
  memory_range near;
  if (!b.launch->memory || !b.launch->memory->nearest(address, near)) return ", no allocation is near";
  const std::uint64_t end = near.begin + near.size;
  std::string text = ", ";
  if (address < near.begin) {
    text += std::to_string(near.begin - address) + " bytes before";
  } else if (address >= end) {
    text += std::to_string(address - end) + " bytes behind";
  } else {
    text += near.writable ? "at offset " + std::to_string(address - near.begin) + " of"
                          : "at offset " + std::to_string(address - near.begin) + " of the read-only";
  }
  return text + " allocation " + hexadecimal(near.begin) + " of " + std::to_string(near.size) + " bytes";
}

/// Where a shared or local address lies; empty when it is neither.
std::string window_of(const warp* w, const instruction* s, std::uint64_t address) {
  // Windows are counted from 0; a copy's other side may be a generic address.
  if (!s || address >> 32 != 0) return {};
  const auto& m = s->modifiers;
  const auto named = [&](std::string_view prefix) {
    return std::any_of(m.begin(), m.end(),
                       [&](std::string_view x) { return x.substr(0, prefix.size()) == prefix; });
  };
  if (named("shared")) return " of shared memory, the block has " + std::to_string(w->shared_size) + " bytes";
  if (named("local")) return " of local memory, a thread has " + std::to_string(w->local_stride) + " bytes";
  return {};
}

std::uint32_t padded(std::uint32_t bytes) { return (bytes + 63) & ~63u; }

}  // namespace

std::int64_t steady_now() {
  timespec t{};
  clock_gettime(CLOCK_MONOTONIC, &t);
  return t.tv_sec * 1000000000 + t.tv_nsec;
}

const inst* warp_fault(warp* w, const inst* i, fault kind, int lane, std::uint64_t address) {
  block& b = *w->owner;
  w->happened = event::fault;
  if (b.failed.kind != outcome::ok) return leave();
  auto& r = b.failed;
  r.address = address;
  r.block = b.index;
  if (lane >= 0 && lane < warp_lanes) r.thread = {w->tid[0][lane], w->tid[1][lane], w->tid[2][lane]};
  std::string what;
  switch (kind) {
    case fault::address:
      r.kind = outcome::illegal_address, what = "illegal address " + hexadecimal(address);
      break;
    case fault::misaligned:
      r.kind = outcome::misaligned_address, what = "misaligned address " + hexadecimal(address);
      break;
    case fault::trap:
      r.kind = outcome::trap, what = "trap";
      break;
    case fault::assertion:
      r.kind = outcome::assertion, what = "assertion failed";
      break;
    case fault::instruction:
      r.kind = outcome::illegal_instruction, what = "illegal operand " + hexadecimal(address);
      break;
    case fault::stack:
      r.kind = outcome::illegal_address,
      what = "stack overflow, local memory of a thread is " + std::to_string(w->local_stride) + " bytes";
      break;
    case fault::heap:
      r.kind = outcome::trap, what = "free of " + hexadecimal(address) + ", which malloc did not give";
      break;
    case fault::deadlock:
      r.kind = outcome::deadlock, what = "barrier that can never complete";
      break;
  }
  std::string_view name = b.launch->kernel->name;
  const instruction* s = i ? statement_at(*b.launch->module, i, name) : nullptr;
  r.line = s ? s->line : 0;
  if (kind == fault::address || kind == fault::misaligned) {
    const std::string window = window_of(w, s, address);
    what += window.empty() ? neighbour(b, address) : window;
  }
  r.text = "kernel " + b.launch->kernel->name + ": " + what + ", thread " + triple(r.thread) + " of block " +
           triple(r.block);
  if (s) {
    r.text += ", line " + std::to_string(s->line);
    if (name != b.launch->kernel->name) r.text += " in " + std::string(name);
    r.text += ": " + std::string(s->text.substr(0, max_shown));
  }
  return leave();
}

bool warp_resolve(warp* w, std::uint64_t address, std::uint32_t size, bool write, range& out) {
  block& b = *w->owner;
  const auto holds = [&](const range& r) {
    return address - r.begin < r.size && r.size - (address - r.begin) >= size;
  };
  const auto use = [&](const range& r) {
    out = r;
    return true;
  };
  for (std::uint32_t n = 0; n < b.ranges.used; ++n) {
    const auto& e = b.ranges.entries[n];
    if (holds(e.where) && (e.writable || !write)) return use(e.where);
  }
  // Windows of this block first: the caller's ranges need not know them.
  const range shared{reinterpret_cast<std::uint64_t>(w->shared), w->shared_size};
  if (holds(shared)) return use(shared);
  const range local{reinterpret_cast<std::uint64_t>(w->local), w->local_stride * warp_lanes};
  if (holds(local)) return use(local);
  const range parameters{reinterpret_cast<std::uint64_t>(w->parameters), w->parameter_size};
  if (!write && holds(parameters)) return use(parameters);
  const range workspace{reinterpret_cast<std::uint64_t>(b.launch->grid_workspace),
                        b.launch->grid_workspace ? 64u : 0u};
  if (holds(workspace)) return use(workspace);
  if (b.launch->children != nullptr && holds(b.launch->children->parameters()))
    return use(b.launch->children->parameters());
  memory_range found;
  if (!b.launch->memory || !b.launch->memory->find(address, found)) return false;
  const range r{found.begin, found.size};
  if (!holds(r) || (write && !found.writable)) return false;
  auto& slot = b.ranges.entries[b.ranges.next];
  b.ranges.next = (b.ranges.next + 1) % static_cast<std::uint32_t>(b.ranges.entries.size());
  b.ranges.used = std::min(b.ranges.used + 1, static_cast<std::uint32_t>(b.ranges.entries.size()));
  slot = {r, found.writable};
  return use(r);
}

namespace {

std::uint64_t block_number(const block& b) {
  const dimensions& grid = b.launch->grid;
  return b.index[0] + grid[0] * (b.index[1] + std::uint64_t{grid[1]} * b.index[2]);
}

template <class T>
void set_lanes(warp* w, std::uint32_t reference, T v) {
  auto* d = reinterpret_cast<T*>(w->base[0] + reference);
  if (w->mask == all_lanes) {
    std::fill_n(d, warp_lanes, v);
  } else {
    for (std::uint32_t on = w->mask; on != 0; on &= on - 1) d[std::countr_zero(on)] = v;
  }
}

}  // namespace

const inst* block_special(warp* w, const inst* i) {  // a table
  const block& b = *w->owner;
  const launch_state& launch = *b.launch;
  const auto workspace = reinterpret_cast<std::uint64_t>(launch.grid_workspace);
  std::uint64_t v = 0;
  bool wide = false;
  switch (static_cast<special>(i->aux)) {
    case special::ntid_x:
      v = launch.block[0];
      break;
    case special::ntid_y:
      v = launch.block[1];
      break;
    case special::ntid_z:
      v = launch.block[2];
      break;
    case special::ctaid_x:
      v = b.index[0];
      break;
    case special::ctaid_y:
      v = b.index[1];
      break;
    case special::ctaid_z:
      v = b.index[2];
      break;
    case special::nctaid_x:
      v = launch.grid[0];
      break;
    case special::nctaid_y:
      v = launch.grid[1];
      break;
    case special::nctaid_z:
      v = launch.grid[2];
      break;
    case special::warpid:
      v = w->index;
      break;
    case special::nwarpid:
      v = 32;
      break;
    case special::smid:
      v = block_number(b) % 8;
      break;
    case special::nsmid:
      v = 8;
      break;
    case special::gridid:
      v = launch.id, wide = true;
      break;
    case special::clock:
    case special::timer_lo:
      v = static_cast<std::uint64_t>(steady_now()) & 0xffffffff;
      break;
    case special::clock_hi:
    case special::timer_hi:
      v = static_cast<std::uint64_t>(steady_now()) >> 32;
      break;
    case special::clock64:
    case special::timer:
      v = static_cast<std::uint64_t>(steady_now()), wide = true;
      break;
    case special::envreg1:
      v = workspace >> 32;
      break;
    case special::envreg2:
      v = workspace & 0xffffffff;
      break;
    case special::dynamic_shared:
      v = launch.shared_bytes - launch.dynamic_base;
      break;
    case special::total_shared:
      v = launch.shared_bytes;
      break;
    case special::dynamic_base:
      v = launch.dynamic_base + static_cast<std::uint64_t>(i->imm);
      break;
    case special::zero:
      v = 0;
      break;
    case special::zero8:
      v = 0, wide = true;
      break;
    case special::one:
      v = 1;
      break;
  }
  if (wide) {
    set_lanes(w, i->r[0], v);
  } else {
    set_lanes(w, i->r[0], static_cast<std::uint32_t>(v));
  }
  return i + 1;
}

const inst* block_in_space(warp* w, const inst* i) {
  const auto parameters = reinterpret_cast<std::uint64_t>(w->parameters);
  const auto& constants = w->owner->launch->module->constant_ranges;
  each_lane(w, [&](int l) {
    const auto a = lane_value<std::uint64_t>(w, i->r[1], l);
    const bool yes = i->aux == 1 ? a - parameters < w->parameter_size
                                 : std::any_of(constants.begin(), constants.end(),
                                               [&](const range& r) { return a - r.begin < r.size; });
    set_lane_predicate(w, i->r[0], l, yes);
  });
  return i + 1;
}

bool block_start(block& b, launch_state& launch, std::uint64_t number) {
  if (b.launch != &launch) {
    b.launch = &launch;
    b.shared = make_lane_memory(launch.shared_bytes);
    b.local = make_lane_memory(launch.local_bytes * launch.warps * warp_lanes);
    b.warps.clear();
    b.warps.resize(launch.warps);
    b.ranges = {};
    if (!b.shared || !b.local) return false;
    for (std::uint32_t n = 0; n < launch.warps; ++n) {
      auto& w = b.warps[n];
      w.owner = &b;
      w.index = n;
      w.shared = b.shared.get();
      w.shared_size = launch.shared_bytes;
      w.local_stride = launch.local_bytes;
      w.local = b.local.get() + launch.local_bytes * warp_lanes * n;
      w.parameters = launch.parameters.data();
      w.parameter_size = static_cast<std::uint32_t>(launch.parameters.size());
      for (std::uint32_t l = 0; l < warp_lanes; ++l) {
        const std::uint32_t thread = n * warp_lanes + l;
        w.tid[0][l] = thread % launch.block[0];
        w.tid[1][l] = thread / launch.block[0] % launch.block[1];
        w.tid[2][l] = thread / launch.block[0] / launch.block[1];
      }
    }
  } else {
    // What another block left behind is as undefined as registers are; zeros keep runs repeatable.
    std::memset(b.shared.get(), 0, padded(launch.shared_bytes));
  }
  b.number = number;
  b.index[0] = static_cast<std::uint32_t>(number % launch.grid[0]);
  b.index[1] = static_cast<std::uint32_t>(number / launch.grid[0] % launch.grid[1]);
  b.index[2] = static_cast<std::uint32_t>(number / launch.grid[0] / launch.grid[1]);
  b.barriers = {};
  b.cluster_phase = false;
  b.exited = 0;
  b.next_warp = 0;
  b.runtime_errors.clear();
  for (std::uint32_t n = 0; n < launch.warps; ++n) {
    auto& w = b.warps[n];
    if (!warp_base_frame(w, launch.kernel)) return false;
    const std::uint32_t threads = std::min(launch.threads - n * warp_lanes, 32u);
    warp_begin(w, threads == 32 ? all_lanes : (1u << threads) - 1);
  }
  return true;
}

block_progress block_run(block& b, std::int64_t deadline, const std::atomic<bool>& stop) {
  while (true) {
    bool ran = false;
    for (std::uint32_t n = 0; n < b.warps.size(); ++n) {
      auto& w = b.warps[b.next_warp];
      b.next_warp = b.next_warp + 1 == b.warps.size() ? 0 : b.next_warp + 1;
      if (w.exited == all_lanes || !warp_run(w, warp_budget)) continue;
      ran = true;
      if (b.failed.kind != outcome::ok) return block_progress::failed;
      if (b.exited == b.launch->threads) return block_progress::finished;
      // Between barriers a slice may be a microsecond: the clock is not asked every time.
      const bool late = (++b.slices & 15) == 0 && steady_now() > deadline;
      if (late || stop.load(std::memory_order_relaxed)) return block_progress::waiting;
    }
    if (!ran) {
      auto& w =
          *std::find_if(b.warps.begin(), b.warps.end(), [](const auto& x) { return x.exited != all_lanes; });
      const auto& g = w.groups.front();
      warp_fault(&w, g.pc, fault::deadlock, std::countr_zero(g.mask), 0);
      return block_progress::failed;
    }
  }
}

}  // namespace outboard::ptx
