// The small logger of the front-end library and of everything below the server. Whole lines to stderr by one
// write(2) each, nothing on stdout, silent by default except errors. The server sends the lines elsewhere by
// set_sink(). Any thread may write at any time; the level and the sink are set once, early, by main() or the
// library's one init.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <type_traits>

namespace outboard::log {

enum class level : int { off, error, warn, info, debug };  // nothing is written at `off`

std::string_view name(level l);
/// Of "off", "error", "warn", "info", "debug".
std::optional<level> parse_level(std::string_view text);

void set_level(level most);
bool enabled(level l);

/// Takes a line without newline; nullptr brings the default (stderr) back.
using sink = void (*)(level, std::string_view line);
void set_sink(sink s);

/// Writes one line if the level is enabled. Control characters of what a peer sent become '?': a log line is
/// one line.
void write(level l, std::string_view line);

namespace detail {
inline void append(std::string& to, std::string_view text) { to += text; }
template <class T>
requires std::is_arithmetic_v<T>
void append(std::string& to, T number) { to += std::to_string(number); }
}  // namespace detail

/// Puts texts and numbers together; nothing is formatted when the level is off.
template <class... Parts>
void line(level l, const Parts&... parts) {
  if (!enabled(l)) return;
  std::string text;
  (detail::append(text, parts), ...);
  write(l, text);
}

template <class... Parts>
void error(const Parts&... parts) {
  line(level::error, parts...);
}
template <class... Parts>
void warn(const Parts&... parts) {
  line(level::warn, parts...);
}
template <class... Parts>
void info(const Parts&... parts) {
  line(level::info, parts...);
}
template <class... Parts>
void debug(const Parts&... parts) {
  line(level::debug, parts...);
}

}  // namespace outboard::log
