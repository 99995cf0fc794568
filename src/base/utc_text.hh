// Times of the calendar as text, in UTC. Any thread.
#pragma once

#include <array>
#include <cstdint>
#include <ctime>
#include <string>

namespace outboard {

/// Seconds since 1970, as strftime() writes them; "2026-11-28 09:40 UTC" without a `form`. Empty: no calendar
/// has that time.
inline std::string utc_text(std::int64_t seconds, const char* form = "%Y-%m-%d %H:%M UTC") {
  const auto time = static_cast<std::time_t>(seconds);
  std::tm parts{};
  std::array<char, 64> text{};
  if (!::gmtime_r(&time, &parts) || std::strftime(text.data(), text.size(), form, &parts) == 0) return {};
  return text.data();
}

}  // namespace outboard
