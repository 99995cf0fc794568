#include "bench/rows.hh"

#include <algorithm>
#include <array>
#include <bit>

namespace outboard::bench {
namespace {

using enum unit;
using enum shape;

constexpr std::array all{
    row{"start", "first call to first kernel done", milliseconds, other, 0},
    row{"query", "a call with an answer (cuMemGetInfo)", microseconds, waiting},
    row{"event_wait", "record an event, wait for it", microseconds, waiting},
    row{"launch_wait", "launch, wait", microseconds, waiting},
    row{"step", "launch, 4 bytes back, wait", microseconds, waiting},
    row{"burst", "40 launches, 4 bytes back, wait", microseconds, launching, 2},
    row{"launch_submit", "launch: to submit one", microseconds, launching, 0},
    row{"launches", "launch: sustained", thousands_per_second, launching, 3},
    row{"allocate", "allocate and free 1 MiB", microseconds, allocating},
    row{"in_pageable_4k", "copy in 4 KiB, pageable", microseconds, waiting},
    row{"in_locked_4k", "copy in 4 KiB, page-locked", microseconds, waiting},
    row{"out_pageable_4k", "copy out 4 KiB, pageable", microseconds, waiting},
    row{"out_locked_4k", "copy out 4 KiB, page-locked", microseconds, waiting},
    row{"in_pageable_1m", "copy in 1 MiB, pageable", gigabytes_per_second, moving},
    row{"in_locked_1m", "copy in 1 MiB, page-locked", gigabytes_per_second, moving},
    row{"out_pageable_1m", "copy out 1 MiB, pageable", gigabytes_per_second, moving},
    row{"out_locked_1m", "copy out 1 MiB, page-locked", gigabytes_per_second, moving},
    row{"in_pageable_bulk", "copy in {bulk}, pageable", gigabytes_per_second, moving, 1.5},
    row{"in_locked_bulk", "copy in {bulk}, page-locked", gigabytes_per_second, moving, 1.5},
    row{"out_pageable_bulk", "copy out {bulk}, pageable", gigabytes_per_second, moving, 1.5},
    row{"out_locked_bulk", "copy out {bulk}, page-locked", gigabytes_per_second, moving, 1.5},
    row{line_row, "the line alone: TCP's handshake", microseconds, other, 0},
};

}  // namespace

std::span<const row> rows() { return all; }

const row* find_row(std::string_view name) {
  const auto* found = std::ranges::find(all, name, &row::name);
  return found == all.end() ? nullptr : found;
}

std::string_view unit_text(unit u) {
  switch (u) {
    case microseconds:
      return "us";
    case milliseconds:
      return "ms";
    case thousands_per_second:
      return "k/s";
    case gigabytes_per_second:
      return "GB/s";
  }
  return "?";
}

bool higher_is_better(unit u) { return u == thousands_per_second || u == gigabytes_per_second; }

std::uint64_t choose_bulk(std::uint64_t device_free, std::uint64_t host_free, double rate, double seconds) {
  const auto affordable = static_cast<std::uint64_t>(std::clamp(rate * 1e9 * seconds / 3, 0.0, 1e12));
  const std::uint64_t most = std::min({most_bulk, device_free / 4, host_free / 8, affordable});
  constexpr std::uint64_t smallest = 2 * mebibyte;
  constexpr double patience = 0.05;
  if (rate * 1e9 * patience < static_cast<double>(smallest)) return 0;
  return std::max(std::bit_floor(most), smallest);
}

}  // namespace outboard::bench
