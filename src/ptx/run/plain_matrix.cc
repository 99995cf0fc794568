#include "ptx/run/plain_matrix.hh"

#include <cstring>

#include "ptx/run/warp.hh"

namespace outboard::ptx {
namespace {

using u16 = std::uint16_t;
using u32 = std::uint32_t;
using u64 = std::uint64_t;

/// Address of a place in one lane without any check.
u64 plain_address(const warp* w, const place& p, int lane) {
  const bool narrow = p.window == where::shared32 || p.window == where::local32;
  const u64 raw = narrow ? lane_value<u32>(w, p.address, lane) : lane_value<u64>(w, p.address, lane);
  return (raw + static_cast<u64>(p.offset)) & (narrow ? 0xffffffff : ~u64{0});
}

/// A tile's elements as host memory: one check where the whole tile is in one range, else one an access.
class tile_memory {
 public:
  tile_memory(warp* w, const inst* i, const tile_step& s, int lane) : warp_(w), inst_(i), step_(s) {
    base_ = plain_address(w, s.base, lane);
    if (s.base.window != where::generic) window_ = w->shared, room_ = w->shared_size;
  }
  /// Where `size` bytes begin that are all good; nullptr when not.
  char* whole(u64 size, u32 align) {
    if (base_ & (align - 1)) return nullptr;
    if (window_) return base_ < room_ && room_ - base_ >= size ? window_ + base_ : nullptr;
    if (size >> 32 != 0) return nullptr;
    const bool good = warp_resolve(warp_, base_, static_cast<u32>(size), step_.store, near_);
    return good ? reinterpret_cast<char*>(base_) : nullptr;
  }
  char* at(u64 byte, u32 size, int lane) {
    const u64 address = base_ + byte;
    if (address & (size - 1)) return warp_fault(warp_, inst_, fault::misaligned, lane, address), nullptr;
    if (window_) {
      if (address < room_ && room_ - address >= size) return window_ + address;
    } else if ((address - near_.begin < near_.size && near_.size - (address - near_.begin) >= size) ||
               warp_resolve(warp_, address, size, step_.store, near_)) {
      return reinterpret_cast<char*>(address);
    }
    return warp_fault(warp_, inst_, fault::address, lane, address), nullptr;
  }

 private:
  warp* warp_;
  const inst* inst_;
  const tile_step& step_;
  u64 base_ = 0, room_ = 0;
  char* window_ = nullptr;
  range near_;
};

/// Every element by itself, each access checked: tiles that are not wholly in one range, and their faults.
const inst* tile_checked(warp* w, const inst* i, const tile_step& s, tile_memory& memory, u64 stride) {
  const fragment& f = s.tile;
  // Below a byte an access is a register's worth: such matrices are stored along k, which it holds.
  const u32 together = s.bits < 8 ? f.cells : 1, bytes = s.bits < 8 ? 4 : s.bits / 8;
  for (u32 r = 0; r < f.registers; ++r) {
    for (u32 l = 0; l < warp_lanes; ++l) {
      if (!(w->mask >> l & 1)) continue;
      char* in_register = w->base[f.r[r] & 1] + f.r[r] + l * (f.kind == cell::f64 ? 8 : 4);
      for (u32 c = 0; c < f.cells; c += together) {
        const u32 spot = f.position[(r * f.cells + c) * warp_lanes + l];
        const u64 row = spot / f.columns, column = spot % f.columns;
        const u64 element = s.by_column ? column * stride + row : row * stride + column;
        char* in_memory = memory.at(element * s.bits / 8, bytes, static_cast<int>(l));
        if (!in_memory) return leave();
        char* part = in_register + c * s.bits / 8;
        std::memcpy(s.store ? in_memory : part, s.store ? part : in_memory, bytes);
      }
    }
  }
  return i + 1;
}

/// All lanes, all addresses good: T is an element of memory.
template <class T>
void tile_fast(warp* w, const tile_step& s, char* memory, u32 stride) {
  const fragment& f = s.tile;
  const auto shift = static_cast<u32>(std::countr_zero(f.columns));
  const u32 row_step = s.by_column ? 1 : stride, column_step = s.by_column ? stride : 1;
  const u16* position = f.position;
  auto* elements = reinterpret_cast<T*>(memory);
  for (u32 r = 0; r < f.registers; ++r) {
    auto* in_register = reinterpret_cast<T*>(w->base[f.r[r] & 1] + f.r[r]);
    for (u32 c = 0; c < f.cells; ++c, position += warp_lanes) {
      for (u32 l = 0; l < warp_lanes; ++l) {
        const u32 row = position[l] >> shift, column = position[l] & (f.columns - 1);
        const u64 at = u64{row} * row_step + u64{column} * column_step;
        T& part = in_register[l * f.cells + c];
        if (s.store) {
          elements[at] = part;
        } else {
          part = elements[at];
        }
      }
    }
  }
}

}  // namespace

const inst* tile_run(warp* w, const inst* i) {
  if (const inst* out = warp_converge(w, i, all_lanes)) return out;
  const auto& s = *reinterpret_cast<const tile_step*>(i->imm);
  const fragment& f = s.tile;
  const int first = std::countr_zero(w->mask);
  tile_memory memory(w, i, s, first);
  const auto stride = lane_value<u32>(w, s.stride, first);
  const u32 bytes = s.bits / 8;
  if (w->mask == all_lanes && bytes != 0) {
    const u64 lines = s.by_column ? f.columns : f.rows, along = s.by_column ? f.rows : f.columns;
    if (char* all = memory.whole(((lines - 1) * stride + along) * bytes, bytes)) {
      switch (bytes) {
        case 1:
          tile_fast<std::uint8_t>(w, s, all, stride);
          break;
        case 2:
          tile_fast<u16>(w, s, all, stride);
          break;
        case 4:
          tile_fast<u32>(w, s, all, stride);
          break;
        default:
          tile_fast<u64>(w, s, all, stride);
          break;
      }
      return i + 1;
    }
  }
  return tile_checked(w, i, s, memory, stride);
}

const inst* rows_run(warp* w, const inst* i) {
  if (const inst* out = warp_converge(w, i, all_lanes)) return out;
  const auto& s = *reinterpret_cast<const rows_step*>(i->imm);
  for (u32 n = 0; n < s.matrices; ++n) {
    u16 tile[8][8] = {};
    char* row[8] = {};
    for (u32 g = 0; g < 8; ++g) {
      row[g] = lane_shared(w, i, s.row, static_cast<int>(n * 8 + g), 16, 16);
      if (!row[g]) return leave();
      if (!s.store) std::memcpy(tile[g], row[g], 16);
    }
    auto* values = reinterpret_cast<u32*>(w->base[s.r[n] & 1] + s.r[n]);
    for (u32 l = 0; l < warp_lanes; ++l) {
      const u32 g = l / 4, t = l % 4 * 2;
      u16& low = s.transposed ? tile[t][g] : tile[g][t];
      u16& high = s.transposed ? tile[t + 1][g] : tile[g][t + 1];
      if (s.store) {
        low = static_cast<u16>(values[l]), high = static_cast<u16>(values[l] >> 16);
      } else if (w->mask >> l & 1) {
        values[l] = low | u32{high} << 16;
      }
    }
    for (u32 g = 0; g < 8 && s.store; ++g) std::memcpy(row[g], tile[g], 16);
  }
  return i + 1;
}

const inst* matrix_transpose(warp* w, const inst* i) {
  if (const inst* out = warp_converge(w, i, all_lanes)) return out;
  u16 tile[8][8];
  for (int l = 0; l < warp_lanes; ++l) {
    const auto v = lane_value<u32>(w, i->r[1], l);
    tile[l / 4][l % 4 * 2] = static_cast<u16>(v), tile[l / 4][l % 4 * 2 + 1] = static_cast<u16>(v >> 16);
  }
  each_lane(w, [&](int l) {
    set_lane<u32>(w, i->r[0], l, tile[l % 4 * 2][l / 4] | u32{tile[l % 4 * 2 + 1][l / 4]} << 16);
  });
  return i + 1;
}

const inst* elect(warp* w, const inst* i) {
  const u32 member = lane_value<u32>(w, i->r[5], std::countr_zero(w->mask));
  if (const inst* out = warp_converge(w, i, member)) return out;
  const u32 here = member & w->mask;
  const int leader = std::countr_zero(here != 0 ? here : w->mask);
  each_lane(w, [&](int l) {
    set_lane<u32>(w, i->r[0], l, static_cast<u32>(leader));
    set_lane_predicate(w, i->r[1], l, l == leader);
  });
  return i + 1;
}

}  // namespace outboard::ptx
