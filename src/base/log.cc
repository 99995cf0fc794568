#include "base/log.hh"

#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>

#include "base/clean_line.hh"

namespace outboard::log {
namespace {

constexpr std::array<std::string_view, 5> names{"off", "error", "warn", "info", "debug"};

// Relaxed everywhere: nothing else is published by them, a line more or less around a change harms nobody.
std::atomic<level> most_wanted{level::error};
std::atomic<sink> where{nullptr};

void to_stderr(level l, std::string_view text) {
  std::string whole = "outboard: ";
  if (l != level::error) whole.append(name(l)).append(": ");
  whole.append(text).push_back('\n');
  // A program may look at errno after a call that logged.
  const int saved = errno;
  while (::write(STDERR_FILENO, whole.data(), whole.size()) < 0 && errno == EINTR) {
  }
  errno = saved;
}

}  // namespace

std::string_view name(level l) { return names[static_cast<std::size_t>(l)]; }

std::optional<level> parse_level(std::string_view text) {
  const auto* at = std::find(names.begin(), names.end(), text);
  if (at == names.end()) return std::nullopt;
  return static_cast<level>(at - names.begin());
}

void set_level(level most) { most_wanted.store(most, std::memory_order_relaxed); }
bool enabled(level l) { return l <= most_wanted.load(std::memory_order_relaxed); }
void set_sink(sink s) { where.store(s, std::memory_order_relaxed); }

void write(level l, std::string_view text) {
  if (!enabled(l)) return;
  const sink s = where.load(std::memory_order_relaxed);
  (s ? s : to_stderr)(l, clean_line(text));
}

}  // namespace outboard::log
