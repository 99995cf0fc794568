#include "make.hh"

#include <algorithm>
#include <cmath>

#include "model.hh"

namespace chains {
namespace {

class maker {
 public:
  maker(std::uint64_t seed, const limits& within) : random_(seed), within_(within) {}

  chain make() {
    make_blocks();
    model order(made_);
    const int wanted = between(3, 22);
    for (int tries = 0; static_cast<int>(made_.operations.size()) < wanted && tries < 40 * wanted; ++tries) {
      const operation o = propose();
      if (std::find(within_.without.begin(), within_.without.end(), o.what) != within_.without.end())
        continue;
      if (order.step(o)) {
        keep(o);
      } else if (one_in(4)) {
        const operation join = propose_join();
        if (order.step(join)) keep(join);
      }
    }
    return made_;
  }

 private:
  std::uint64_t below(std::uint64_t n) { return n ? random_() % n : 0; }
  int between(int low, int high) {
    return low + static_cast<int>(below(static_cast<std::uint64_t>(high - low + 1)));
  }
  bool one_in(unsigned n) { return below(n) == 0; }
  std::uint64_t log_uniform(std::uint64_t most) {
    const double share = static_cast<double>(random_() >> 11) / 9007199254740992.0;
    return std::max<std::uint64_t>(
        1, static_cast<std::uint64_t>(std::exp(share * std::log(static_cast<double>(most)))));
  }

  void keep(const operation& o) {
    if (o.what == verb::graph) ++graphs_;
    if (o.what == verb::record) recorded_ = true;
    made_.operations.push_back(o);
  }

  void make_blocks() {
    std::uint64_t scale = log_uniform(within_.gpu ? 16u << 20 : 64u << 10);
    if (!within_.gpu && one_in(60)) scale = (1u << 20) + below(3u << 20);
    const auto add = [&](memory kind) {
      block b{kind, between(0, within_.devices - 1), scale + below(scale), 0};
      if (kind == memory::registered && !one_in(3)) b.skew = static_cast<unsigned>(below(4096));
      made_.blocks.push_back(b);
    };
    constexpr memory hosts[] = {memory::pinned, memory::mapped, memory::registered, memory::pageable};
    add(memory::device);
    add(hosts[below(3)]);
    for (int more = between(1, 4); more > 0; --more) add(one_in(3) ? memory::device : hosts[below(4)]);
    // Most chains keep to a few streams: then more of what they do is in order.
    streams_.clear();
    for (int n = between(1, 4); n > 0; --n) {
      const int device = between(0, within_.devices - 1);
      streams_.push_back(device * streams_of_a_device + between(0, streams_of_a_device - 1));
    }
  }

  int any_stream() { return streams_[below(streams_.size())]; }
  int own_stream() {  // no default stream
    const int device = between(0, within_.devices - 1);
    return device * streams_of_a_device + between(2, streams_of_a_device - 1);
  }

  int any_block(bool (*fits)(memory)) {
    std::vector<int> all;
    for (std::size_t b = 0; b < made_.blocks.size(); ++b) {
      if (fits(made_.blocks[b].kind)) all.push_back(static_cast<int>(b));
    }
    return all.empty() ? -1 : all[below(all.size())];
  }
  static bool any(memory) { return true; }
  static bool seen_by_kernels(memory kind) { return kind == memory::device || kind == memory::mapped; }
  static bool by_host(memory kind) { return is_host(kind); }

  /// Beginnings and ends meet often, else what is done in order would seldom touch the same bytes.
  place somewhere(int b, std::uint64_t size) {
    const std::uint64_t room = made_.blocks[b].size - std::min(size, made_.blocks[b].size);
    return {b, one_in(2) ? 0 : one_in(3) ? room : below(room + 1)};
  }
  std::uint64_t size_for(int a, int b) {
    const std::uint64_t most = std::min(made_.blocks[a].size, made_.blocks[b].size);
    return one_in(3) ? most : one_in(2) ? log_uniform(most) : most / 2 + 1 + below(most - most / 2);
  }

  operation on(verb what, int stream) {
    operation o;
    o.what = what;
    o.stream = stream;
    o.device = stream_of(stream).device;
    return o;
  }

  operation propose_mix(verb what, int stream) {
    operation o = on(what, stream);
    const auto fits = what == verb::kernel ? seen_by_kernels : by_host;
    const int to = any_block(fits), from = any_block(fits);
    if (to < 0) return on(verb::spin, stream);
    o.value = static_cast<std::uint8_t>(random_());
    o.size =
        std::min<std::uint64_t>(size_for(to, from), what == verb::kernel && !within_.gpu ? 1024 : 1u << 20);
    o.to = somewhere(to, o.size);
    o.from = to == from ? o.to : somewhere(from, o.size);
    return o;
  }

  operation propose_copy(int stream) {
    operation o = on(verb::copy, stream);
    const int to = any_block(any), from = any_block(any);
    o.size = std::min(size_for(to, from), to == from ? made_.blocks[to].size / 2 + 1 : ~std::uint64_t{0});
    o.to = somewhere(to, o.size), o.from = somewhere(from, o.size);
    o.how = static_cast<form>(below(3));
    if (!is_default(stream) && within_.devices > 1 && one_in(4)) o.device = between(0, within_.devices - 1);
    return o;
  }

  operation propose_box(int stream) {
    operation o = on(verb::box, stream);
    const int to = any_block(any), from = any_block(any);
    const std::uint64_t most = std::min(made_.blocks[to].size, made_.blocks[from].size);
    const std::uint64_t rows = log_uniform(std::min<std::uint64_t>(64, most));
    o.layers = rows > 3 && one_in(2) ? 2 + below(std::min<std::uint64_t>(rows / 2, 3)) : 1;
    o.rows = std::max<std::uint64_t>(1, rows / o.layers);
    const std::uint64_t room = most / (o.rows * o.layers);
    if (room == 0) return on(verb::spin, stream);
    o.size = one_in(3) ? room : log_uniform(room);
    o.to.pitch = o.size + (one_in(2) ? 0 : below(room - o.size + 1));
    o.from.pitch = o.size + (one_in(2) ? 0 : below(room - o.size + 1));
    const auto put = [&](place& side, int b) {
      const std::uint64_t pitch = side.pitch;
      side = somewhere(b, extent(o, side));
      side.pitch = pitch;
    };
    put(o.to, to), put(o.from, from);
    const auto kind = [&](int b) { return made_.blocks[b].kind; };
    const bool across = kind(to) == memory::device && kind(from) == memory::device &&
                        made_.blocks[to].device != made_.blocks[from].device;
    o.how = across ? form::peer : one_in(2) ? form::unified : form::by_kind;
    if (!is_default(stream) && within_.devices > 1 && one_in(4)) o.device = between(0, within_.devices - 1);
    return o;
  }

  operation propose_fill(int stream) {
    operation o = on(verb::fill, stream);
    const int to = any_block(seen_by_kernels);
    o.size = size_for(to, to);
    o.to = somewhere(to, o.size);
    o.value = static_cast<std::uint8_t>(random_());
    return o;
  }

  operation propose_spin(int stream) {
    operation o = on(verb::spin, stream);
    o.size = log_uniform(within_.gpu ? 4000 : 400);
    return o;
  }

  operation propose_write() {
    operation o;
    o.what = verb::write;
    const int to = any_block(by_host);
    o.size = size_for(to, to);
    o.to = somewhere(to, o.size);
    o.value = static_cast<std::uint8_t>(random_());
    return o;
  }

  operation propose_join() {
    operation o = on(verb::join_stream, any_stream());
    constexpr verb kinds[] = {verb::join_stream, verb::poll_stream, verb::join_context, verb::join_event};
    o.what = kinds[below(recorded_ ? 4 : 3)];
    o.event = between(0, most_events - 1);
    return o;
  }

  /// What may stand in a graph.
  operation propose_node(int stream) {
    switch (below(8)) {
      case 0:
        return propose_box(stream);
      case 1:
        return propose_fill(stream);
      case 2:
        return propose_mix(verb::kernel, stream);
      case 3:
        return one_in(2) ? propose_mix(verb::host_function, stream) : propose_copy(stream);
      case 4:
        return propose_spin(stream);
      default:
        return propose_copy(stream);
    }
  }

  operation propose_graph() {
    operation o = on(verb::graph, own_stream());
    o.graph = graphs_;
    o.captured = one_in(2);
    const bool in_a_row = o.captured || one_in(3);
    for (int n = between(1, 6); n > 0; --n) {
      operation part = propose_node(o.stream);
      part.device = o.device;
      if (part.how == form::peer) part.how = form::unified;
      const bool may_reach = o.captured && part.what == verb::copy;
      if (!may_reach && !same_device(part, o.device)) continue;
      std::vector<int> after;
      const int count = static_cast<int>(o.parts.size());
      for (int j = 0; j < count; ++j) {
        if (in_a_row ? j == count - 1 : !one_in(3)) after.push_back(j);
      }
      o.parts.push_back(part);
      o.after.push_back(after);
    }
    if (o.captured && one_in(3)) {
      for (int n = between(1, 2); n > 0; --n) {
        operation b = propose_copy(own_stream());
        const bool early = made_.blocks[b.to.block].kind == memory::pageable ||
                           made_.blocks[b.from.block].kind == memory::pageable;
        if (b.stream != o.stream && !early) o.beside.push_back(b);
      }
    }
    return o;
  }
  /// Nodes of a graph work on one device, but for copies that are captured.
  bool same_device(const operation& part, int device) const {
    const auto here = [&](const place& p) {
      return p.block < 0 || made_.blocks[p.block].kind != memory::device ||
             made_.blocks[p.block].device == device;
    };
    return here(part.to) && here(part.from);
  }

  operation propose_batch() {
    const bool boxes = one_in(3);
    operation o = on(boxes ? verb::box_batch : verb::batch, own_stream());
    for (int n = between(1, 4); n > 0; --n) {
      operation part = boxes ? propose_box(o.stream) : propose_copy(o.stream);
      part.device = o.device;
      if (part.how == form::peer && boxes) continue;
      if (part.what == verb::spin) continue;
      part.how = form::unified;
      part.access = static_cast<order>(below(3));
      o.parts.push_back(part);
    }
    return o;
  }

  const operation& graph(int number) const {
    int seen = 0;
    return *std::find_if(made_.operations.begin(), made_.operations.end(),
                         [&](const operation& o) { return o.what == verb::graph && seen++ == number; });
  }

  operation propose_launch() {
    operation o = on(verb::launch, any_stream());
    o.graph = static_cast<int>(below(graphs_));
    const operation& made = graph(o.graph);
    if (stream_of(o.stream).device != made.device)
      o.stream = made.device * streams_of_a_device + o.stream % streams_of_a_device;
    o.device = made.device;
    return o;
  }

  /// Mostly one end moves, or none.
  operation propose_change() {
    operation o = propose_launch();
    o.what = verb::change;
    const operation& made = graph(o.graph);
    std::vector<int> copies;
    for (std::size_t i = 0; i < made.parts.size(); ++i) {
      if (made.parts[i].what == verb::copy) copies.push_back(static_cast<int>(i));
    }
    if (made.captured || copies.empty()) return propose_launch();
    o.node = copies[below(copies.size())];
    operation part = propose_copy(made.stream);
    part.device = made.device;
    part.how = form::unified;
    const operation& before = made.parts[o.node];
    if (one_in(2)) part.to = before.to, part.size = before.size;
    if (one_in(2)) part.from = before.from, part.size = before.size;
    o.parts.push_back(part);
    return o;
  }

  /// Some copies go elsewhere, some host functions look elsewhere, some fills bring other numbers.
  operation propose_update() {
    operation o = propose_launch();
    const operation& made = graph(o.graph);
    if (made.captured) return o;
    o.what = verb::update;
    o.stream = made.stream;
    o.parts = made.parts, o.after = made.after;
    for (operation& part : o.parts) {
      if (one_in(2)) continue;
      operation other = part;
      if (part.what == verb::copy) other = propose_copy(made.stream), other.how = form::unified;
      if (part.what == verb::host_function) other = propose_mix(verb::host_function, made.stream);
      if (part.what == verb::fill) other.value = static_cast<std::uint8_t>(random_());
      if (other.what != part.what) continue;
      if (part.what == verb::copy && one_in(2)) other.to = part.to, other.size = part.size;
      if (part.what == verb::copy && one_in(2)) other.from = part.from, other.size = part.size;
      other.device = part.device;
      part = other;
    }
    return o;
  }

  operation propose_drop() {
    operation o = propose_launch();
    o.what = verb::drop;
    return o;
  }

  operation propose() {
    const int stream = any_stream();
    operation o;
    switch (below(24)) {
      default:
        o = one_in(5) ? propose_box(stream) : propose_copy(stream);
        if (stream_of(stream).kind == stream_kind::legacy && one_in(2)) o.synchronous = true;
        return o;
      case 0:
      case 1:
        return propose_fill(stream);
      case 2:
      case 3:
        return propose_mix(verb::kernel, stream);
      case 4:
      case 5:
        return propose_spin(stream);
      case 6:
        return propose_mix(verb::host_function, stream);
      case 7:
        o = on(verb::record, stream);
        o.event = between(0, most_events - 1);
        return o;
      case 8:
        o = on(verb::wait, stream);
        o.event = between(0, most_events - 1);
        return o;
      case 9:
        return propose_join();
      case 10:
      case 11:
        return propose_write();
      case 12:
        o = propose_write();
        o.what = verb::look;
        return o;
      case 13:
      case 14:
        return propose_batch();
      case 15:
        return graphs_ < 3 ? propose_graph() : propose_launch();
      case 16:
      case 17:
      case 18:
        return graphs_ ? propose_launch() : propose_graph();
      case 19:
        if (!graphs_) return propose_graph();
        if (one_in(5)) return propose_drop();
        return one_in(2) ? propose_update() : propose_change();
    }
  }

  std::mt19937_64 random_;
  limits within_;
  chain made_;
  std::vector<int> streams_;
  int graphs_ = 0;
  bool recorded_ = false;
};

}  // namespace

chain make_chain(std::uint64_t seed, const limits& within) { return maker(seed, within).make(); }

}  // namespace chains
