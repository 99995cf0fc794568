#include "tool/text.hh"

#include <fmt/format.h>

#include <algorithm>
#include <cstdio>

#include "tool/exit_status.hh"
#include "tool/verbs.hh"

namespace outboard::tool {
namespace {

/// Characters of UTF-8, so that accents do not shift a column.
std::size_t width_of(std::string_view text) {
  return static_cast<std::size_t>(
      std::ranges::count_if(text, [](unsigned char c) { return (c & 0xc0) != 0x80; }));
}

}  // namespace

std::string table(const std::vector<std::vector<std::string>>& rows) {
  std::vector<std::size_t> widths;
  for (const auto& row : rows) {
    widths.resize(std::max(widths.size(), row.size()));
    for (std::size_t i = 0; i < row.size(); ++i) widths[i] = std::max(widths[i], width_of(row[i]));
  }
  std::string out;
  for (const auto& row : rows) {
    for (std::size_t i = 0; i < row.size(); ++i) {
      out += row[i];
      // The last column needs no blanks behind it.
      if (i + 1 < row.size()) out.append(widths[i] - width_of(row[i]) + 2, ' ');
    }
    out += '\n';
  }
  return out;
}

std::string size_text(double bytes) {
  constexpr double mebibyte = 1u << 20, gibibyte = 1u << 30;
  return bytes < gibibyte ? fmt::format("{:.0f} MiB", bytes / mebibyte)
                          : fmt::format("{:.1f} GiB", bytes / gibibyte);
}

std::string duration_text(double seconds) {
  const auto whole = static_cast<std::uint64_t>(std::max(seconds, 0.0));
  constexpr std::uint64_t minute = 60, hour = 60 * minute, day = 24 * hour;
  if (whole < minute) return fmt::format("{} s", whole);
  if (whole < hour) return fmt::format("{} min", whole / minute);
  if (whole < day) return fmt::format("{} h {} min", whole / hour, whole % hour / minute);
  return fmt::format("{} {} {} h", whole / day, whole < 2 * day ? "day" : "days", whole % day / hour);
}

int print(std::string_view text) {
  const bool written = std::fwrite(text.data(), 1, text.size(), stdout) == text.size();
  return written && std::fflush(stdout) == 0 ? exit_good
                                             : complain(exit_failed, "cannot write to the standard output");
}

}  // namespace outboard::tool
