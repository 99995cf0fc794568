#include "ptx/reference/machine.hh"

#include <bit>
#include <cstring>

#include "ptx/reference/thread.hh"

namespace outboard::ptx::reference {
namespace {

std::uint64_t rounded_up(std::uint64_t at, std::uint64_t align) { return (at + align - 1) / align * align; }

result<prepared> prepare(const function& f) {
  prepared p;
  p.source = &f;
  for (const auto& i : f.body) {
    auto o = operation_of(i);
    if (!o) return std::move(o).error();
    p.operations.push_back(*o);
  }
  for (const auto& v : f.variables) {
    p.frame_bytes = rounded_up(p.frame_bytes, 16);
    p.offsets.push_back(p.frame_bytes);
    if (v.where != space::shared) p.frame_bytes += v.size;
  }
  return p;
}

status prepare_all(machine& m) {
  const auto share = [&](const variable& v) {
    if (v.where != space::shared) return;
    m.shared_bytes = rounded_up(m.shared_bytes, std::max<std::uint64_t>(v.align, 1));
    m.shared_offsets[&v] = m.shared_bytes;
    m.shared_bytes += v.size;
  };
  for (const auto& v : m.of->code->variables) share(v);
  for (const auto& f : m.of->code->functions) {
    if (!f.defined) continue;
    auto p = prepare(f);
    if (!p) return std::move(p).error();
    m.functions[&f] = *std::move(p);
    for (const auto& v : f.variables) share(v);
  }
  return {};
}

using threads = std::deque<thread>;  // a deque, because threads must not move

/// The lanes that a waiting thread waits for.
std::uint32_t member_mask(thread& t) {
  const operation& o = t.asks();
  const instruction& i = t.at();
  const std::size_t n = o.what == verb::bar ? 0 : o.what == verb::shfl ? 4 : 2;
  return static_cast<std::uint32_t>(t.value(i.operands[n], type::u32));
}

bool complete(threads& all, std::size_t first, std::size_t last, const instruction* i, std::uint32_t mask) {
  for (std::size_t n = first; n < last; ++n) {
    if (!(mask >> all[n].lane & 1) || all[n].waiting == wait::ended) continue;
    if (all[n].waiting != wait::warp || &all[n].at() != i) return false;
  }
  return true;
}

std::uint64_t reduced(const operation& o, threads& all, const std::vector<std::size_t>& members) {
  std::uint64_t sum = 0;
  for (std::size_t n = 0; n < members.size(); ++n) {
    thread& t = all[members[n]];
    const std::uint64_t v = t.value(t.at().operands[1], o.t);
    sum = n == 0 ? v : updated(o.by, o.t, sum, v, 0);
  }
  return sum;
}

struct shuffled {
  std::uint64_t value = 0;
  bool inside = false;
};

shuffled shuffle(threads& all, std::size_t first, std::size_t last, thread& t) {
  const operation& o = t.asks();
  const instruction& i = t.at();
  const auto b = static_cast<std::uint32_t>(t.value(i.operands[2], type::u32)) & 31;
  const auto c = static_cast<std::uint32_t>(t.value(i.operands[3], type::u32));
  const std::uint32_t clamp = c & 31, segment = c >> 8 & 31, lane = t.lane;
  const std::uint32_t most = (lane & segment) | (clamp & ~segment), least = lane & segment;
  std::int64_t from = 0;
  bool inside = false;
  switch (o.mode) {
    case 'u':
      from = std::int64_t{lane} - b, inside = from >= std::int64_t{most};
      break;
    case 'd':
      from = std::int64_t{lane} + b, inside = from <= std::int64_t{most};
      break;
    case 'b':
      from = lane ^ b, inside = from <= std::int64_t{most};
      break;
    default:
      from = least | (b & ~segment), inside = from <= std::int64_t{most};
  }
  if (!inside) from = lane;
  const std::size_t source = first + static_cast<std::size_t>(from);
  const bool there = source < last && all[source].waiting == wait::warp;
  return {there ? all[source].value(all[source].at().operands[1], type::b32) : 0, inside};
}

/// Called when all of `members` stand at one instruction: gives each its result, then lets all continue.
void meet(threads& all, std::size_t first, std::size_t last, const std::vector<std::size_t>& members) {
  const operation o = all[members[0]].asks();
  const instruction& i = all[members[0]].at();
  std::vector<shuffled> moved;
  std::uint32_t ballot = 0, everyone = 0;
  std::uint64_t total = 0;
  for (const auto n : members) {
    everyone |= 1u << all[n].lane;
    if (o.what == verb::shfl) moved.push_back(shuffle(all, first, last, all[n]));
    if (o.what == verb::vote && all[n].value(i.operands[1], type::pred)) ballot |= 1u << all[n].lane;
  }
  if (o.what == verb::redux) total = reduced(o, all, members);
  std::vector<std::uint32_t> same;
  if (o.what == verb::match) {
    for (const auto n : members) {
      std::uint32_t mask = 0;
      for (const auto k : members) {
        if (all[k].value(i.operands[1], o.t) == all[n].value(i.operands[1], o.t)) mask |= 1u << all[k].lane;
      }
      same.push_back(mask);
    }
  }
  for (std::size_t k = 0; k < members.size(); ++k) {
    thread& t = all[members[k]];
    const operand& d = i.operands[0];
    const operand& first_result = d.kind == operand_kind::pair ? d.parts[0] : d;
    if (o.what == verb::shfl) {
      t.set(first_result, type::b32, moved[k].value);
      if (d.kind == operand_kind::pair) t.set(d.parts[1], type::pred, moved[k].inside);
    } else if (o.what == verb::vote) {
      const bool all_true = ballot == everyone;
      if (o.mode == 'b')
        t.set(d, type::b32, ballot);
      else
        t.set(d, type::pred,
              o.mode == 'a'   ? all_true
              : o.mode == 'o' ? ballot != 0
                              : all_true || ballot == 0);
    } else if (o.what == verb::match) {
      const bool agreed = same[k] == everyone;
      t.set(first_result, type::b32, o.mode == 'a' && !agreed ? 0 : same[k]);
      if (d.kind == operand_kind::pair) t.set(d.parts[1], type::pred, agreed);
    } else if (o.what == verb::redux) {
      t.set(d, o.t, total);
    }
  }
  for (const auto n : members) all[n].go_on();
}

bool meet_in_warp(threads& all, std::size_t first, std::size_t last) {
  for (std::size_t n = first; n < last; ++n) {
    if (all[n].waiting != wait::warp) continue;
    const std::uint32_t mask = member_mask(all[n]);
    if (!complete(all, first, last, &all[n].at(), mask)) continue;
    std::vector<std::size_t> members;
    for (std::size_t k = first; k < last; ++k) {
      if (mask >> all[k].lane & 1 && all[k].waiting == wait::warp) members.push_back(k);
    }
    meet(all, first, last, members);
    return true;
  }
  return false;
}

/// bar.sync and bar.red of barrier 0, for all threads of the block that have not ended. The tests use no
/// other barrier.
bool meet_in_block(threads& all) {
  for (const auto& t : all) {
    if (t.waiting != wait::block_barrier && t.waiting != wait::ended) return false;
  }
  bool any = false;
  for (auto& t : all) {
    if (t.waiting == wait::block_barrier) any = true, t.go_on();
  }
  return any;
}

status run_block(machine& m, const prepared& kernel, dimensions block) {
  const auto& size = m.of->block;
  std::vector<std::uint64_t> shared(m.shared_bytes / 8 + 2);
  threads all;
  for (std::uint32_t z = 0; z < size[2]; ++z) {
    for (std::uint32_t y = 0; y < size[1]; ++y) {
      for (std::uint32_t x = 0; x < size[0]; ++x) {
        all.emplace_back(m, kernel, dimensions{x, y, z}, block, reinterpret_cast<char*>(shared.data()));
        all.back().index = static_cast<std::uint32_t>(all.size() - 1);
        all.back().lane = all.back().index % 32;
      }
    }
  }
  for (;;) {
    bool moved = false, alive = false;
    for (auto& t : all) {
      moved |= t.waiting == wait::none;
      OUTBOARD_TRY(t.run());
      alive |= t.waiting != wait::ended;
    }
    if (!alive) return {};
    for (std::size_t first = 0; first < all.size(); first += 32) {
      while (meet_in_warp(all, first, std::min(first + 32, all.size()))) moved = true;
    }
    if (!moved && !meet_in_block(all)) return failure("threads wait for each other indefinitely");
  }
}

}  // namespace

status run(const launch& l) {
  machine m;
  m.of = &l;
  OUTBOARD_TRY(prepare_all(m));
  const function* kernel = l.code->find_function(l.kernel);
  if (!kernel || !kernel->defined) return failure("no kernel " + std::string(l.kernel));
  std::uint64_t at = 0;
  for (const auto& p : kernel->parameters) {
    at = rounded_up(at, std::max<std::uint64_t>(p.align, 1));
    m.parameter_offsets[p.name] = at;
    at += p.size;
  }
  if (at > l.parameters.size()) return failure("too few bytes of parameters");
  for (std::uint32_t z = 0; z < l.grid[2]; ++z) {
    for (std::uint32_t y = 0; y < l.grid[1]; ++y) {
      for (std::uint32_t x = 0; x < l.grid[0]; ++x)
        OUTBOARD_TRY(run_block(m, m.function_of(kernel), {x, y, z}));
    }
  }
  return {};
}

}  // namespace outboard::ptx::reference
