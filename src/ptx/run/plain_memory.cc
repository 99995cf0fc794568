// Addresses of plain steps, and accesses wider than the lane loops have.
#include "ptx/run/plain.hh"

namespace outboard::ptx {
namespace {

/// Where an access of no bytes goes: its address may be anything, null too.
char nothing = 0;

}  // namespace

char* checked_memory(warp* w, const inst* i, int lane, std::uint64_t address, std::uint32_t size,
                     std::uint32_t align, bool write) {
  if (size == 0) return &nothing;
  if (address & (align - 1)) {
    warp_fault(w, i, fault::misaligned, lane, address);
    return nullptr;
  }
  range valid;
  if (!warp_resolve(w, address, size, write, valid)) {
    warp_fault(w, i, fault::address, lane, address);
    return nullptr;
  }
  return reinterpret_cast<char*>(address);
}

char* lane_place(warp* w, const inst* i, const place& p, int lane, std::uint32_t size, std::uint32_t align,
                 bool write) {
  if (size == 0) return &nothing;
  const bool narrow = p.window == where::shared32 || p.window == where::local32;
  const std::uint64_t raw =
      narrow ? lane_value<std::uint32_t>(w, p.address, lane) : lane_value<std::uint64_t>(w, p.address, lane);
  std::uint64_t at = raw + static_cast<std::uint64_t>(p.offset);
  if (narrow) at &= 0xffffffff;
  if (p.window == where::generic) return checked_memory(w, i, lane, at, size, align, write);
  const bool local = p.window == where::local32 || p.window == where::local64;
  const std::uint64_t room = local ? w->local_stride : w->shared_size;
  if (at & (align - 1)) {
    warp_fault(w, i, fault::misaligned, lane, at);
    return nullptr;
  }
  if (at > room || room - at < size) {
    warp_fault(w, i, fault::address, lane, at);
    return nullptr;
  }
  return local ? w->local + static_cast<std::uint64_t>(lane) * w->local_stride + at : w->shared + at;
}

char* lane_shared(warp* w, const inst* i, const place& p, int lane, std::uint32_t size, std::uint32_t align) {
  char* at = lane_place(w, i, p, lane, size, align, true);
  if (!at || size == 0 || p.window != where::generic) return at;
  const auto offset = reinterpret_cast<std::uint64_t>(at) - reinterpret_cast<std::uint64_t>(w->shared);
  if (offset < w->shared_size) return at;
  warp_fault(w, i, fault::address, lane, reinterpret_cast<std::uint64_t>(at));
  return nullptr;
}

}  // namespace outboard::ptx
