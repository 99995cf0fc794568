#include "base/clean_line.hh"

#include <array>

namespace outboard {
namespace {

struct character {
  char32_t code = 0;
  std::size_t bytes = 0;  ///< 0: not UTF-8
};

/// Reads the first character of a text that is not empty.
character first_of(std::string_view text) {
  const auto byte = [&](std::size_t i) { return static_cast<unsigned char>(text[i]); };
  const unsigned char lead = byte(0);
  if (lead < 0x80) return {lead, 1};
  const std::size_t bytes = lead >= 0xf0 ? 4 : lead >= 0xe0 ? 3 : 2;
  if (lead < 0xc2 || lead > 0xf4 || text.size() < bytes) return {};
  char32_t code = lead & (0x7fu >> bytes);
  for (std::size_t i = 1; i < bytes; ++i) {
    if ((byte(i) & 0xc0) != 0x80) return {};
    code = code << 6 | (byte(i) & 0x3fu);
  }
  constexpr std::array<char32_t, 5> least{0, 0, 0x80, 0x800, 0x10000};
  const bool surrogate = code >= 0xd800 && code <= 0xdfff;
  return code < least[bytes] || code > 0x10ffff || surrogate ? character{} : character{code, bytes};
}

bool is_harmless(char32_t c) {
  const auto within = [c](char32_t first, char32_t last) { return c >= first && c <= last; };
  const bool control = c < 0x20 || within(0x7f, 0x9f);
  const bool direction =
      c == 0x61c || within(0x200e, 0x200f) || within(0x202a, 0x202e) || within(0x2066, 0x2069);
  const bool separator = within(0x2028, 0x2029);
  return !control && !direction && !separator;
}

}  // namespace

std::string clean_line(std::string_view text) {
  std::string out;
  out.reserve(text.size());
  while (!text.empty()) {
    const character c = first_of(text);
    const std::size_t bytes = c.bytes == 0 ? 1 : c.bytes;
    if (c.bytes != 0 && is_harmless(c.code)) {
      out.append(text.substr(0, bytes));
    } else {
      out.push_back('?');
    }
    text.remove_prefix(bytes);
  }
  return out;
}

}  // namespace outboard
