// What programs have said of ranges of managed memory: advice and the last prefetch. One memory serves host
// and device here, so it changes nothing; it is kept because programs ask for it. Any thread; owned by the
// machine.
#pragma once

#include <cstdint>
#include <map>
#include <mutex>
#include <optional>

#include "api/cuda/headers.hh"

namespace outboard::device::cpu {

/// A place where memory can be, as the driver numbers it: a device, -1 the host, -2 none.
inline constexpr int on_host = -1, nowhere = -2;

class advice_book {
 public:
  CUresult advise(std::uint64_t begin, std::uint64_t size, CUmem_advise advice, int place);
  void prefetched(std::uint64_t begin, std::uint64_t size, int place);
  /// CUDA_ERROR_INVALID_VALUE: no such attribute, or it does not fit the size.
  CUresult get(std::uint64_t begin, std::uint64_t size, CUmem_range_attribute which, void* out,
               std::size_t out_size) const;
  void forget(std::uint64_t begin, std::uint64_t size);

 private:
  struct state {
    bool read_mostly = false, device_accesses = false, host_accesses = false;
    int preferred = nowhere, prefetched = nowhere;
  };
  using pieces = std::map<std::uint64_t, std::pair<std::uint64_t, state>>;  // begin -> end, what was said

  pieces::iterator cut_at(std::uint64_t address);
  template <class Change>
  void change(std::uint64_t begin, std::uint64_t size, Change&& change);
  /// The value that all of the range has, or `otherwise`.
  template <class Value>
  int common(std::uint64_t begin, std::uint64_t size, int otherwise, Value&& value) const;

  mutable std::mutex mutex_;
  pieces pieces_;
};

}  // namespace outboard::device::cpu
