#include "ptx/run/texture_steps.hh"

#include <algorithm>
#include <atomic>
#include <bit>
#include <cstring>
#include <optional>

#include "ptx/run/warp.hh"

namespace outboard::ptx {
namespace {

template <class T>
T value_of(const warp* w, std::uint32_t reference, int lane) {
  return reinterpret_cast<const T*>(w->base[reference & 1] + reference)[lane];
}
template <class T>
void put(warp* w, std::uint32_t reference, int lane, T value) {
  reinterpret_cast<T*>(w->base[0] + reference)[lane] = value;
}

/// One instruction at work: what it read last is remembered, because lanes mostly name the same object.
class run {
 public:
  run(warp* w, const inst* i, const texture_site& site)
      : w_(w), i_(i), site_(site), source_(w->owner->launch->textures) {}

  /// nullptr: done; else what the step must return.
  const inst* lane(int l) {
    const auto handle = value_of<std::uint64_t>(w_, site_.handle, l);
    switch (site_.action) {
      case texture_action::sample:
      case texture_action::gather:
      case texture_action::query_texture:
        if (!find_texture(handle)) return bad_handle(l, handle);
        return on_texture(l);
      default:
        if (!find_surface(handle)) return bad_handle(l, handle);
        return on_surface(l);
    }
  }

 private:
  const inst* bad_handle(int l, std::uint64_t handle) {
    return warp_fault(w_, i_, fault::address, l, handle);
  }

  bool find_texture(std::uint64_t handle) {
    if (texture_ && handle == known_) return true;
    texture_ = source_ ? source_->find_texture(handle) : nullptr;
    known_ = handle;
    whole_ = texture_ == nullptr || !texture_->memory.borrowed || is_there(texture_->memory);
    return texture_ != nullptr;
  }

  /// All of what a texture over plain memory covers is memory of this launch.
  bool is_there(const image& m) const {
    const image_level& level = m.levels.front();
    if (level.width == 0) return false;
    const std::uint64_t size =
        (level.height - 1) * level.pitch + std::uint64_t{level.width} * m.texel_bytes();
    return level.data != nullptr && is_there(reinterpret_cast<std::uint64_t>(level.data), size);
  }
  bool is_there(std::uint64_t begin, std::uint64_t size) const {
    const address_space* memory = w_->owner->launch->memory;
    memory_range range;
    return memory == nullptr || (memory->find(begin, range) && range.begin + range.size - begin >= size);
  }
  /// Where a lane reads what is not there; 0: it reads what is, or nothing.
  std::uint64_t hole(const texture_query& q) const {
    const image& m = texture_->memory;
    const image_level& level = m.levels.front();
    const auto begin = reinterpret_cast<std::uint64_t>(level.data);
    if (!q.by_index || !m.in_memory) return begin != 0 ? begin : 1;
    const auto x = static_cast<std::uint32_t>(q.index[0]);
    if (x >= level.width) return 0;
    const std::uint64_t texel = begin + std::uint64_t{x} * m.texel_bytes();
    return is_there(texel, m.texel_bytes()) ? 0 : texel;
  }
  bool find_surface(std::uint64_t handle) {
    if (surface_ && handle == known_) return true;
    surface_ = source_ ? source_->find_surface(handle) : nullptr;
    known_ = handle;
    return surface_ != nullptr;
  }

  std::uint32_t layer(int l) const { return site_.layered ? value_of<std::uint32_t>(w_, site_.layer, l) : 0; }

  texture_query query(int l) const {
    texture_query q;
    q.shape = site_.shape;
    q.layer = layer(l);
    q.by_index = site_.by_index;
    for (std::size_t d = 0; d < static_cast<std::size_t>(site_.dimensions); ++d) {
      if (site_.by_index) {
        q.index[d] = value_of<std::int32_t>(w_, site_.coordinates[d], l);
      } else {
        q.at[d] = value_of<float>(w_, site_.coordinates[d], l);
      }
    }
    if (site_.has_level) {
      q.level = site_.by_index ? static_cast<float>(value_of<std::int32_t>(w_, site_.level, l))
                               : value_of<float>(w_, site_.level, l);
    }
    q.has_gradient = site_.has_gradient;
    if (q.has_gradient) {
      for (std::size_t v = 0; v < 2; ++v) {
        for (std::size_t d = 0; d < static_cast<std::size_t>(site_.dimensions); ++d)
          q.gradient[3 * v + d] = value_of<float>(w_, site_.gradient[3 * v + d], l);
      }
    }
    return q;
  }

  const inst* on_texture(int l) {
    if (site_.action == texture_action::query_texture) {
      put(w_, site_.data[0], l, fact(texture_->memory, &texture_->how));
      return nullptr;
    }
    const texture_query q = query(l);
    if (const std::uint64_t address = whole_ ? 0 : hole(q))
      return warp_fault(w_, i_, fault::address, l, address);
    const texel_bits bits = site_.action == texture_action::gather
                                ? texture_gather(*texture_, q, site_.component)
                                : texture_sample(*texture_, q);
    const auto half = [&](std::size_t n) { return float_to_half_bits(std::bit_cast<float>(bits[n])); };
    for (std::size_t n = 0; n < site_.count; ++n) {
      if (site_.half_pairs) {
        put(w_, site_.data[n], l, half(2 * n) | static_cast<std::uint32_t>(half(2 * n + 1)) << 16);
      } else if (site_.halves) {
        put(w_, site_.data[n], l, half(n));
      } else {
        put(w_, site_.data[n], l, bits[n]);
      }
    }
    return nullptr;
  }

  std::uint32_t fact(const image& m, const sampling* how) const {
    const image_level& level = m.levels.front();
    switch (site_.fact) {
      case texture_fact::width:
        return level.width;
      case texture_fact::height:
        return level.height;
      case texture_fact::depth:
        return m.layered || m.cube ? 1 : level.depth;
      case texture_fact::data_type:
        return data_type(m.format, how && !how->gives_integers(m.format));
      case texture_fact::channel_order:  // numbers of OpenCL: R, RG, RGBA
        return m.channels == 1 ? 0x10b0 : m.channels == 2 ? 0x10b2 : 0x10b5;
      case texture_fact::normalized:
        return how && how->normalized;
      case texture_fact::filter:
        return how && how->linear;
      case texture_fact::address_mode_0:
      case texture_fact::address_mode_1:
      case texture_fact::address_mode_2:
        return how ? static_cast<std::uint32_t>(
                         how->modes[static_cast<std::size_t>(site_.fact) -
                                    static_cast<std::size_t>(texture_fact::address_mode_0)])
                   : 0;
      case texture_fact::array_size:
        return m.layered ? level.depth : 1;
      case texture_fact::levels:
        return static_cast<std::uint32_t>(m.levels.size());
      case texture_fact::samples:
        return 1;
      default:
        return 0;
    }
  }

  /// PTX gives OpenCL's numbers.
  static std::uint32_t data_type(texel t, bool normalized) {
    switch (t) {
      case texel::s8:
        return normalized ? 0x10d0 : 0x10d7;
      case texel::s16:
        return normalized ? 0x10d1 : 0x10d8;
      case texel::u8:
        return normalized ? 0x10d2 : 0x10da;
      case texel::u16:
        return normalized ? 0x10d3 : 0x10db;
      case texel::s32:
        return 0x10d9;
      case texel::u32:
        return 0x10dc;
      case texel::f16:
        return 0x10dd;
      default:
        return 0x10de;
    }
  }

  const inst* on_surface(int l) {
    if (site_.action == texture_action::query_surface)
      return put(w_, site_.data[0], l, fact(*surface_, nullptr)), nullptr;
    std::array<std::int32_t, 3> at{};
    for (std::size_t d = 0; d < static_cast<std::size_t>(site_.dimensions); ++d)
      at[d] = value_of<std::int32_t>(w_, site_.coordinates[d], l);
    const std::uint32_t bytes = site_.in_texels ? surface_->texel_bytes() : site_.count * site_.element_bytes;
    if (site_.in_texels) {
      const std::int64_t x = std::int64_t{at[0]} * bytes;
      at[0] = static_cast<std::int32_t>(std::clamp<std::int64_t>(x, -1, INT32_MAX));
    }
    // The texel's size decides the alignment; what straddles texels would tear.
    if (at[0] % static_cast<std::int32_t>(site_.element_bytes) != 0)
      return warp_fault(w_, i_, fault::misaligned, l, static_cast<std::uint64_t>(at[0]));
    char* place = surface_address(*surface_, site_.shape, at, layer(l), bytes);
    if (!place && site_.outside == outside_rule::trap) return warp_fault(w_, i_, fault::trap, l, 0);
    if (!place && site_.outside == outside_rule::clamp)
      place = surface_clamped(*surface_, site_.shape, at, layer(l), bytes);
    access(l, place);
    return nullptr;
  }

  /// `place` is nullptr where loads give zero and stores are dropped.
  void access(int l, char* place) {
    switch (site_.action) {
      case texture_action::load:
        return load(l, place);
      case texture_action::store:
        if (place) store(l, place);
        return;
      case texture_action::store_texel:
        if (place) store_texel(l, place);
        return;
      default:
        if (place) reduce(l, place);
        return;
    }
  }

  void load(int l, const char* place) {
    for (std::size_t n = 0; n < site_.count; ++n) {
      std::uint64_t v = 0;
      if (place) std::memcpy(&v, place + n * site_.element_bytes, site_.element_bytes);
      switch (site_.element_bytes) {
        case 8:
          put(w_, site_.data[n], l, v);
          break;
        case 4:
          put(w_, site_.data[n], l, static_cast<std::uint32_t>(v));
          break;
        default:
          put(w_, site_.data[n], l, static_cast<std::uint16_t>(v));
          break;
      }
    }
  }

  void store(int l, char* place) {
    std::array<char, 32> bytes{};
    for (std::size_t n = 0; n < site_.count; ++n) {
      const std::uint32_t in_register = std::max(site_.element_bytes, 2u);
      const char* from =
          w_->base[site_.data[n] & 1] + site_.data[n] + static_cast<std::uint32_t>(l) * in_register;
      std::memcpy(bytes.data() + n * site_.element_bytes, from, site_.element_bytes);
    }
    std::memcpy(place, bytes.data(), site_.count * site_.element_bytes);
  }

  void store_texel(int l, char* place) {
    texel_bits v{};
    for (std::size_t n = 0; n < site_.count; ++n) v[n] = value_of<std::uint32_t>(w_, site_.data[n], l);
    surface_put(*surface_, place, v);
  }

  void reduce(int l, char* place) {
    if (site_.element_bytes == 8) {
      if (site_.is_signed) return combine<std::int64_t>(l, place);
      return combine<std::uint64_t>(l, place);
    }
    if (site_.is_signed) return combine<std::int32_t>(l, place);
    combine<std::uint32_t>(l, place);
  }

  template <class T>
  void combine(int l, char* place) {
    const std::atomic_ref<T> cell(*reinterpret_cast<T*>(place));
    const T v = value_of<T>(w_, site_.data[0], l);
    T seen = cell.load(std::memory_order_relaxed);
    while (!cell.compare_exchange_weak(seen, combined(seen, v), std::memory_order_relaxed)) {
    }
  }

  template <class T>
  T combined(T a, T b) const {
    using bits = std::make_unsigned_t<T>;
    switch (site_.how) {
      case reduction::add:
        return static_cast<T>(static_cast<bits>(a) + static_cast<bits>(b));
      case reduction::min:
        return std::min(a, b);
      case reduction::max:
        return std::max(a, b);
      case reduction::and_:
        return static_cast<T>(a & b);
      case reduction::or_:
        return static_cast<T>(a | b);
    }
    return a;
  }

  warp* w_;
  const inst* i_;
  const texture_site& site_;
  const texture_source* source_;
  const texture* texture_ = nullptr;
  const image* surface_ = nullptr;
  bool whole_ = true;
  std::uint64_t known_ = 0;
};

}  // namespace

const inst* texture_step(warp* w, const inst* i) {
  const auto& site = *reinterpret_cast<const texture_site*>(i->imm);
  run all(w, i, site);
  for (std::uint32_t on = w->mask; on != 0; on &= on - 1) {
    if (const inst* out = all.lane(std::countr_zero(on))) return out;
  }
  if (site.wants_predicate) {
    auto* p = reinterpret_cast<std::uint32_t*>(w->base[0] + site.predicate);
    *p |= w->mask;
  }
  return i + 1;
}

}  // namespace outboard::ptx
