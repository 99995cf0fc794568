#include "model.hh"

#include <algorithm>

namespace chains {

std::uint8_t number_at(std::uint64_t seed, std::uint64_t offset) {
  std::uint64_t x = (seed + 1) * 0x9e3779b97f4a7c15ull + offset * 0xbf58476d1ce4e5b9ull;
  x ^= x >> 29;
  return static_cast<std::uint8_t>((x * 0x94d049bb133111ebull) >> 56);
}

model::model(const chain& c) : blocks_(c.blocks), bytes_(c.blocks.size()), accesses_(c.blocks.size()) {
  for (std::size_t b = 0; b < blocks_.size(); ++b) {
    bytes_[b].resize(blocks_[b].size);
    for (std::uint64_t i = 0; i < blocks_[b].size; ++i) bytes_[b][i] = number_at(b, i);
  }
}

void model::join(clock& into, const clock& more) {
  for (int s = 0; s < most_streams; ++s) into[s] = std::max(into[s], more[s]);
}

/// What is done when something begins in the stream: what was there before, and what the host knew at the
/// call.
model::clock model::told(int number) const {
  clock known = reached_[number];
  join(known, host_);
  return known;
}

/// And: the legacy stream and all others of its device that do not say otherwise wait for each other.
model::clock model::beginning(int number) const {
  clock known = told(number);
  const stream s = stream_of(number);
  const int first = s.device * streams_of_a_device;
  if (s.kind == stream_kind::legacy) {
    for (int other = first; other < first + streams_of_a_device; ++other) {
      if (stream_of(other).kind != stream_kind::non_blocking) join(known, reached_[other]);
    }
  } else if (s.kind != stream_kind::non_blocking) {
    join(known, reached_[first]);
  }
  return known;
}

bool model::inside(const operation& o) const {
  const auto fits = [&](const place& p) {
    if (p.block < 0 || p.block >= static_cast<int>(blocks_.size()) || o.size == 0) return false;
    const std::uint64_t size = blocks_[p.block].size, bytes = extent(o, p);
    return bytes <= size && p.offset <= size - bytes && (o.what != verb::box || p.pitch >= o.size);
  };
  if (!fits(o.to)) return false;
  if (!copies_or_mixes(o.what)) return true;
  if (!fits(o.from)) return false;
  if (o.to.block != o.from.block) return true;
  const bool apart =
      o.to.offset + extent(o, o.to) <= o.from.offset || o.from.offset + extent(o, o.from) <= o.to.offset;
  return apart || (!is_copy(o.what) && o.to.offset == o.from.offset);
}

/// May this function be given this memory?
bool model::sound(const operation& o) const {
  const auto reachable = [&](const place& p, int device) {
    const block& b = blocks_[p.block];
    return b.kind == memory::device ? b.device == device : b.kind == memory::mapped;
  };
  switch (o.what) {
    case verb::copy:
    case verb::box: {
      if (!inside(o)) return false;
      const block &to = blocks_[o.to.block], &from = blocks_[o.from.block];
      const bool both = to.kind == memory::device && from.kind == memory::device;
      if (o.what == verb::box)
        return both && to.device != from.device ? o.how == form::peer : o.how != form::peer;
      if (o.how == form::peer) return both;
      return o.how == form::unified || !(is_host(to.kind) && is_host(from.kind));
    }
    case verb::fill:
      return inside(o) && reachable(o.to, o.device) && stream_of(o.stream).device == o.device;
    case verb::kernel:
      return inside(o) && reachable(o.to, o.device) && reachable(o.from, o.device) &&
             stream_of(o.stream).device == o.device;
    case verb::host_function:
      return inside(o) && is_host(blocks_[o.to.block].kind) && is_host(blocks_[o.from.block].kind);
    case verb::write:
    case verb::look:
      return inside(o) && is_host(blocks_[o.to.block].kind);
    default:
      return true;
  }
}

bool model::free_of_races(const touch& t, const clock& known) {
  std::vector<access>& all = accesses_[t.block];
  std::erase_if(all, [&](const access& a) { return host_[a.stream] >= a.number; });
  return std::none_of(all.begin(), all.end(), [&](const access& a) {
    return (a.writes || t.writes) && a.begin < t.end && t.begin < a.end && known[a.stream] < a.number;
  });
}

void model::add_touches(const operation& o, std::vector<touch>& all) const {
  const bool whole = o.what == verb::graph;
  if (whole || o.what == verb::batch || o.what == verb::box_batch) {
    for (const operation& part : o.parts) {
      const std::size_t before = all.size();
      add_touches(part, all);
      for (std::size_t i = before; i < all.size(); ++i) {
        touch& t = all[i];
        const bool pageable = blocks_[t.block].kind == memory::pageable;
        if (whole) {
          // A launch may read pageable sources at once or when it comes to them.
          t.early = is_copy(part.what) && pageable && !t.writes;
          t.lasts = true;
        } else {
          // Nobody promises that a batch with pageable targets has written them when it returns; and what it
          // copies on the host does not wait for the legacy stream (measured: 580).
          t.explicitly = true;
          // Where both ends are the host's and the source need not wait, all of it is done in the call (the
          // same).
          const bool on_host = is_host(blocks_[part.to.block].kind) && is_host(blocks_[part.from.block].kind);
          t.early = part.access != order::in_stream ? !t.writes || on_host : !t.writes && pageable;
          t.lasts = t.writes || part.access != order::during_call;
        }
      }
    }
    return;
  }
  if (o.what == verb::spin) return;
  const auto add = [&](const place& p, bool writes) {
    touch t{p.block, p.offset, p.offset + extent(o, p), writes};
    const bool pageable = is_copy(o.what) && blocks_[p.block].kind == memory::pageable;
    t.early = pageable && !writes;
    t.lasts = !pageable;
    // A driver (580) reads a page-locked source at once if the stream of the copy has nothing to do, though
    // the legacy stream and the others should wait for each other: natively, too, that order is not kept.
    t.explicitly = is_copy(o.what) && !o.synchronous && !writes && is_locked(blocks_[p.block].kind);
    // Copies without a stream return when they have read host memory, and when they have written it.
    if (is_copy(o.what) && o.synchronous && is_host(blocks_[p.block].kind)) t.lasts = false;
    all.push_back(t);
  };
  add(o.to, o.what != verb::look);
  if (copies_or_mixes(o.what)) add(o.from, false);
}

/// A driver takes no change of where a copy's ends lie: on the host, or on which device. For that page-locked
/// memory counts as of the device that was current when it was made (measured: 580), so none of another
/// device takes part.
bool model::same_kind(const operation& before, const operation& wanted) const {
  const auto same = [&](const place& a, const place& b) {
    const block &x = blocks_[a.block], &y = blocks_[b.block];
    const auto fits = [&](const block& k) { return !is_locked(k.kind) || k.device == before.device; };
    return is_host(x.kind) == is_host(y.kind) &&
           (is_host(x.kind) ? fits(x) && fits(y) : x.device == y.device);
  };
  return wanted.what == verb::copy && same(before.to, wanted.to) && same(before.from, wanted.from);
}

/// A driver takes other ends of copies, other host functions, other numbers of fills in the place of what the
/// executable graph has, part by part. Boxes of pageable memory Outboard does not update (docs/memory.md).
bool model::updates(const operation& made, const operation& o) const {
  if (made.captured || made.after != o.after || made.parts.size() != o.parts.size()) return false;
  for (std::size_t i = 0; i < o.parts.size(); ++i) {
    const operation &before = made.parts[i], &wanted = o.parts[i];
    operation plain = wanted;
    if (wanted.what == verb::fill) plain.value = before.value;
    if (wanted.what == verb::box && (blocks_[wanted.to.block].kind == memory::pageable ||
                                     blocks_[wanted.from.block].kind == memory::pageable))
      return false;
    const bool fits = before.what != wanted.what           ? false
                      : wanted.what == verb::copy          ? same_kind(before, wanted)
                      : wanted.what == verb::host_function ? wanted.device == before.device
                                                           : plain == before;
    if (!fits) return false;
  }
  return true;
}

/// Outboard refuses graphs in which copies read more pageable memory behind a host function (docs/memory.md).
bool model::small_enough(const operation& graph) const {
  constexpr std::uint64_t most = 16u << 20;
  std::uint64_t read = 0;
  for (const operation& part : graph.parts) {
    const bool counts =
        is_copy(part.what) && part.from.block >= 0 && blocks_[part.from.block].kind == memory::pageable;
    if (counts) read += bytes_of(part);
  }
  return read <= most;
}

/// Parts of a batch have no order; parts of a graph only that of its edges. A pageable source is nobody's
/// target meanwhile: it may be read at the launch.
bool model::parts_agree(const operation& o) const {
  std::vector<std::vector<touch>> each(o.parts.size());
  std::vector<std::vector<bool>> before(o.parts.size(), std::vector<bool>(o.parts.size()));
  for (std::size_t i = 0; i < o.parts.size(); ++i) {
    if (!sound(o.parts[i])) return false;
    add_touches(o.parts[i], each[i]);
    if (o.what == verb::graph && i < o.after.size()) {
      for (const int j : o.after[i]) {
        if (j < 0 || j >= static_cast<int>(i)) return false;
        before[i][j] = true;
        for (std::size_t k = 0; k < i; ++k) before[i][k] = before[i][k] || before[j][k];
      }
    }
    for (std::size_t j = 0; j < i; ++j) {
      for (const touch& a : each[i]) {
        for (const touch& b : each[j]) {
          if (a.block != b.block || (!a.writes && !b.writes) || a.end <= b.begin || b.end <= a.begin)
            continue;
          const bool early =
              blocks_[a.block].kind == memory::pageable && is_copy(o.parts[i].what) && !a.writes;
          const bool late =
              blocks_[b.block].kind == memory::pageable && is_copy(o.parts[j].what) && !b.writes;
          if (!before[i][j] || early || late) return false;
        }
      }
    }
  }
  return true;
}

bool model::in_stream(const operation& o, const std::vector<touch>& all) {
  const clock said = told(o.stream);
  // Records and waits are no work: where the stream has none they are over at once (measured: 580).
  clock known = o.what == verb::record || o.what == verb::wait ? said : beginning(o.stream);
  if (o.what == verb::wait) join(known, *recorded_[o.event]);
  for (const touch& t : all) {
    if (!free_of_races(t, t.explicitly ? said : known) || (t.early && !free_of_races(t, host_))) return false;
  }
  const std::uint32_t number = ++known[o.stream];
  reached_[o.stream] = known;
  if (o.what == verb::record) recorded_[o.event] = known;
  bool done = false;
  for (const touch& t : all) {
    if (t.lasts) accesses_[t.block].push_back({t.begin, t.end, t.writes, o.stream, number});
    done = done || (!t.lasts && t.writes);
  }
  if (done) join(host_, known);
  return true;
}

void model::perform(const operation& o) {
  const auto mix = [&](std::uint64_t to, std::uint64_t from) {
    auto& target = bytes_[o.to.block];
    target[to] = static_cast<std::uint8_t>(bytes_[o.from.block][from] * 3 + o.value);
  };
  switch (o.what) {
    case verb::copy:
      std::copy_n(bytes_[o.from.block].begin() + static_cast<std::ptrdiff_t>(o.from.offset), o.size,
                  bytes_[o.to.block].begin() + static_cast<std::ptrdiff_t>(o.to.offset));
      break;
    case verb::box:
      for (std::uint64_t row = 0; row < o.rows * o.layers; ++row) {
        const auto from = static_cast<std::ptrdiff_t>(o.from.offset + row * o.from.pitch);
        const auto to = static_cast<std::ptrdiff_t>(o.to.offset + row * o.to.pitch);
        std::copy_n(bytes_[o.from.block].begin() + from, o.size, bytes_[o.to.block].begin() + to);
      }
      break;
    case verb::fill:
      std::fill_n(bytes_[o.to.block].begin() + static_cast<std::ptrdiff_t>(o.to.offset), o.size, o.value);
      break;
    case verb::kernel:
    case verb::host_function:
      for (std::uint64_t i = 0; i < o.size; ++i) mix(o.to.offset + i, o.from.offset + i);
      break;
    case verb::write:
      for (std::uint64_t i = 0; i < o.size; ++i) bytes_[o.to.block][o.to.offset + i] = number_at(o.value, i);
      break;
    default:
      for (const operation& part : o.parts) perform(part);
  }
}

bool model::step(const operation& o) {
  std::vector<touch> all;
  switch (o.what) {
    case verb::join_stream:
    case verb::poll_stream:
      return join(host_, reached_[o.stream]), true;
    case verb::join_context:
      for (int s = 0; s < streams_of_a_device; ++s) join(host_, reached_[o.device * streams_of_a_device + s]);
      return true;
    case verb::join_event:
      if (!recorded_[o.event]) return false;
      return join(host_, *recorded_[o.event]), true;
    case verb::write:
    case verb::look:
      if (!sound(o)) return false;
      add_touches(o, all);
      if (!free_of_races(all[0], host_)) return false;
      if (o.what == verb::write) perform(o);
      return true;
    case verb::wait:
      if (!recorded_[o.event]) return false;
      break;
    case verb::graph: {
      if (o.graph != static_cast<int>(graphs_.size()) || o.parts.empty() || !parts_agree(o) ||
          !small_enough(o))
        return false;
      model trial = *this;  // all of them, or none
      for (const operation& b : o.beside) {
        if (!trial.step(b)) return false;
      }
      *this = std::move(trial);
      graphs_.push_back(o);
      updated_.push_back(false), gone_.push_back(false);
      return true;
    }
    case verb::change: {
      if (!there(o.graph)) return false;
      operation changed = graphs_[o.graph];
      // Outboard refuses single changes of copies then (docs/memory.md).
      if (updated_[o.graph]) return false;
      if (changed.captured || o.node >= static_cast<int>(changed.parts.size())) return false;
      operation& part = changed.parts[o.node];
      const operation& wanted = o.parts[0];
      if (part.what != verb::copy || !same_kind(part, wanted)) return false;
      part = wanted;
      if (!parts_agree(changed) || !small_enough(changed)) return false;
      graphs_[o.graph] = std::move(changed);
      return true;
    }
    case verb::update: {
      if (!there(o.graph) || !updates(graphs_[o.graph], o)) return false;
      operation changed = graphs_[o.graph];
      changed.parts = o.parts;
      if (!parts_agree(changed) || !small_enough(changed)) return false;
      graphs_[o.graph] = std::move(changed);
      updated_[o.graph] = true;
      return true;
    }
    case verb::drop:
      if (!there(o.graph)) return false;
      gone_[o.graph] = true;
      return true;
    case verb::launch: {
      if (!there(o.graph)) return false;
      const operation& made = graphs_[o.graph];
      add_touches(made, all);
      if (!in_stream(o, all)) return false;
      perform(made);
      return true;
    }
    case verb::batch:
    case verb::box_batch:
      if (o.parts.empty() || !parts_agree(o)) return false;
      add_touches(o, all);
      break;
    default:
      if (!sound(o)) return false;
      if (o.what != verb::record) add_touches(o, all);
  }
  if (!in_stream(o, all)) return false;
  if (o.what != verb::record && o.what != verb::wait && o.what != verb::spin) perform(o);
  return true;
}

void model::join_all() {
  for (const clock& c : reached_) join(host_, c);
}

}  // namespace chains
