#include "device/cpu/memory/advice.hh"

#include <algorithm>
#include <cstring>

namespace outboard::device::cpu {
namespace {

CUresult give(void* out, std::size_t size, int value) {
  if (size != sizeof value) return CUDA_ERROR_INVALID_VALUE;
  return std::memcpy(out, &value, sizeof value), CUDA_SUCCESS;
}

int type_of(int place) {
  return place == nowhere   ? CU_MEM_LOCATION_TYPE_INVALID
         : place == on_host ? CU_MEM_LOCATION_TYPE_HOST
                            : CU_MEM_LOCATION_TYPE_DEVICE;
}

}  // namespace

/// Makes a piece begin here if one lies across.
advice_book::pieces::iterator advice_book::cut_at(std::uint64_t address) {
  auto next = pieces_.lower_bound(address);
  if (next == pieces_.begin()) return next;
  const auto before = std::prev(next);
  if (before->second.first <= address) return next;
  const auto tail = before->second;
  before->second.first = address;
  return pieces_.emplace_hint(next, address, tail);
}

template <class Change>
void advice_book::change(std::uint64_t begin, std::uint64_t size, Change&& change) {
  const std::lock_guard lock(mutex_);
  const std::uint64_t end = begin + size;
  cut_at(end);
  auto at = cut_at(begin);
  for (std::uint64_t next = begin; next < end; ++at) {
    if (at == pieces_.end() || at->first > next) {
      const std::uint64_t until = at == pieces_.end() ? end : std::min(end, at->first);
      at = pieces_.emplace_hint(at, next, std::pair(until, state{}));
    }
    change(at->second.second);
    next = at->second.first;
  }
}

CUresult advice_book::advise(std::uint64_t begin, std::uint64_t size, CUmem_advise advice, int place) {
  bool known = true;
  change(begin, size, [&](state& s) {
    const bool on = advice == CU_MEM_ADVISE_SET_ACCESSED_BY;
    switch (advice) {
      case CU_MEM_ADVISE_SET_READ_MOSTLY:
        s.read_mostly = true;
        break;
      case CU_MEM_ADVISE_UNSET_READ_MOSTLY:
        s.read_mostly = false;
        break;
      case CU_MEM_ADVISE_SET_PREFERRED_LOCATION:
        s.preferred = place;
        break;
      case CU_MEM_ADVISE_UNSET_PREFERRED_LOCATION:
        s.preferred = nowhere;
        break;
      case CU_MEM_ADVISE_SET_ACCESSED_BY:
      case CU_MEM_ADVISE_UNSET_ACCESSED_BY:
        (place == on_host ? s.host_accesses : s.device_accesses) = on;
        break;
      default:
        known = false;
    }
  });
  return known ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

void advice_book::prefetched(std::uint64_t begin, std::uint64_t size, int place) {
  change(begin, size, [&](state& s) { s.prefetched = place; });
}

template <class Value>
int advice_book::common(std::uint64_t begin, std::uint64_t size, int otherwise, Value&& value) const {
  const std::uint64_t end = begin + size;
  std::optional<int> found;
  auto at = pieces_.upper_bound(begin);
  if (at != pieces_.begin()) --at;
  std::uint64_t next = begin;
  for (; next < end && at != pieces_.end(); ++at) {
    if (at->second.first <= next) continue;
    if (at->first > next) break;  // of that part nothing was said
    const int here = value(at->second.second);
    if (found && *found != here) return otherwise;
    found = here;
    next = at->second.first;
  }
  return next >= end && found ? *found : otherwise;
}

CUresult advice_book::get(std::uint64_t begin, std::uint64_t size, CUmem_range_attribute which, void* out,
                          std::size_t out_size) const {
  const std::lock_guard lock(mutex_);
  const auto preferred = [&] {
    return common(begin, size, nowhere, [](const state& s) { return s.preferred; });
  };
  const auto prefetched = [&] {
    return common(begin, size, nowhere, [](const state& s) { return s.prefetched; });
  };
  switch (which) {
    case CU_MEM_RANGE_ATTRIBUTE_READ_MOSTLY:
      return give(out, out_size, common(begin, size, 0, [](const state& s) { return int{s.read_mostly}; }));
    case CU_MEM_RANGE_ATTRIBUTE_PREFERRED_LOCATION:
      return give(out, out_size, preferred());
    case CU_MEM_RANGE_ATTRIBUTE_LAST_PREFETCH_LOCATION:
      return give(out, out_size, prefetched());
    case CU_MEM_RANGE_ATTRIBUTE_PREFERRED_LOCATION_TYPE:
      return give(out, out_size, type_of(preferred()));
    case CU_MEM_RANGE_ATTRIBUTE_PREFERRED_LOCATION_ID:
      return give(out, out_size, std::max(preferred(), 0));
    case CU_MEM_RANGE_ATTRIBUTE_LAST_PREFETCH_LOCATION_TYPE:
      return give(out, out_size, type_of(prefetched()));
    case CU_MEM_RANGE_ATTRIBUTE_LAST_PREFETCH_LOCATION_ID:
      return give(out, out_size, std::max(prefetched(), 0));
    case CU_MEM_RANGE_ATTRIBUTE_ACCESSED_BY: {
      if (out_size % sizeof(int) != 0) return CUDA_ERROR_INVALID_VALUE;
      int found[2];
      std::size_t n = 0;
      if (common(begin, size, 0, [](const state& s) { return int{s.device_accesses}; })) found[n++] = 0;
      if (common(begin, size, 0, [](const state& s) { return int{s.host_accesses}; })) found[n++] = on_host;
      for (std::size_t i = 0; i < out_size / sizeof(int); ++i) {
        const int value = i < n ? found[i] : nowhere;
        std::memcpy(static_cast<std::byte*>(out) + i * sizeof value, &value, sizeof value);
      }
      return CUDA_SUCCESS;
    }
    default:
      return CUDA_ERROR_INVALID_VALUE;
  }
}

void advice_book::forget(std::uint64_t begin, std::uint64_t size) {
  const std::lock_guard lock(mutex_);
  cut_at(begin + size);
  for (auto at = cut_at(begin); at != pieces_.end() && at->first < begin + size;) at = pieces_.erase(at);
}

}  // namespace outboard::device::cpu
