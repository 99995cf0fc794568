// What `outboard bench` measures: a row for each kind of call, in the order of its page. Constants; any
// thread.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>

namespace outboard::bench {

enum class unit : std::uint8_t { microseconds, milliseconds, thousands_per_second, gigabytes_per_second };

/// Which programs feel a row.
enum class shape : std::uint8_t {
  launching,   ///< much work is submitted for each wait
  waiting,     ///< the host waits for each small piece of work
  moving,      ///< large copies
  allocating,  ///< memory comes and goes
  other,       ///< said by its own words, if at all
};

struct row {
  std::string_view name;   ///< in JSON, for ever
  std::string_view about;  ///< for people; "{bulk}" stands for the size of the large copies
  unit in = unit::microseconds;
  shape of = shape::other;
  double weight = 1;  ///< its part of the time
};

inline constexpr std::uint64_t kibibyte = 1 << 10, mebibyte = 1 << 20;
/// The largest of the large copies, where memory and line are good for it.
inline constexpr std::uint64_t most_bulk = 64 * mebibyte;
/// Of the row `burst`.
inline constexpr int launches_of_burst = 40;
/// What the command measures by itself, beside the program.
inline constexpr std::string_view line_row = "line";

std::span<const row> rows();

/// Null: there is none of this name.
const row* find_row(std::string_view name);

/// "us", "GB/s".
std::string_view unit_text(unit u);

/// Amounts for each second; else times.
bool higher_is_better(unit u);

/// How large the large copies are: a power of two of at least 2 MiB and at most most_bulk, a quarter of
/// `device_free` and an eighth of `host_free` (bytes), and such that three copies at `rate` (GB/s) take about
/// `seconds`. 0, there are none: one of 2 MiB would take more than a twentieth of a second.
std::uint64_t choose_bulk(std::uint64_t device_free, std::uint64_t host_free, double rate, double seconds);

}  // namespace outboard::bench
