#include "ptx/text/lexer.hh"

#include <algorithm>
#include <bit>
#include <cstdlib>
#include <cstring>
#include <string>

namespace outboard::ptx {
namespace {

// The locale must not change what a letter is, so not <cctype>.
bool is_digit(char c) { return c >= '0' && c <= '9'; }
bool is_letter(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z'); }
bool starts_name(char c) { return is_letter(c) || c == '_' || c == '$' || c == '%'; }
bool in_name(char c) { return is_letter(c) || is_digit(c) || c == '_' || c == '$'; }

int hex_digit(char c) {
  if (is_digit(c)) return c - '0';
  if (c >= 'a' && c <= 'f') return c - 'a' + 10;
  if (c >= 'A' && c <= 'F') return c - 'A' + 10;
  return -1;
}

}  // namespace

bool lexer::skip_blank() {
  while (at_ < text_.size()) {
    const char c = text_[at_];
    if (c == '\n') {
      ++line_, ++at_;
    } else if (c == ' ' || c == '\t' || c == '\r' || c == '\f' || c == '\v') {
      ++at_;
    } else if (text_.substr(at_, 2) == "//") {
      at_ = std::min(text_.find('\n', at_), text_.size());
    } else if (text_.substr(at_, 2) == "/*") {
      const auto close = text_.find("*/", at_ + 2);
      if (close == std::string_view::npos) return false;
      for (; at_ < close + 2; ++at_) line_ += text_[at_] == '\n';
    } else {
      break;
    }
  }
  return true;
}

token lexer::next() {
  const bool sound = skip_blank();
  token t;
  t.line = line_;
  if (!sound) {
    t.kind = token_kind::bad, t.text = text_.substr(at_, 2), at_ = text_.size();
    return t;
  }
  if (at_ >= text_.size()) return t;
  const std::size_t start = at_;
  const char c = text_[at_];
  const auto take_name = [&] {
    while (at_ < text_.size()) {
      if (in_name(text_[at_])) {
        ++at_;
      } else if (text_[at_] == '.' && at_ + 1 < text_.size() && in_name(text_[at_ + 1])) {
        ++at_;
      } else if (at_ + 2 < text_.size() && text_.substr(at_, 2) == "::" && in_name(text_[at_ + 2])) {
        at_ += 2;
      } else {
        break;
      }
    }
  };
  if (starts_name(c)) {
    ++at_;
    take_name();
    t.kind = token_kind::name;
    t.text = text_.substr(start, at_ - start);
    return t;
  }
  if (c == '.' && at_ + 1 < text_.size() && in_name(text_[at_ + 1]) && !is_digit(text_[at_ + 1])) {
    ++at_;
    while (at_ < text_.size() && in_name(text_[at_])) ++at_;
    t.kind = token_kind::directive;
    t.text = text_.substr(start + 1, at_ - start - 1);
    return t;
  }
  if (is_digit(c)) return number(t);
  if (c == '"') {
    const auto close = text_.find_first_of("\"\n", at_ + 1);
    if (close == std::string_view::npos || text_[close] == '\n') {
      t.kind = token_kind::bad, t.text = text_.substr(start, 1), at_ = text_.size();
      return t;
    }
    at_ = close + 1;
    t.kind = token_kind::string;
    t.text = text_.substr(start + 1, close - start - 1);
    return t;
  }
  ++at_;
  t.text = text_.substr(start, 1);
  t.kind = std::strchr("{}()[]<>,;:=@!|+-*/~&^?", c) && c ? token_kind::punctuation : token_kind::bad;
  return t;
}

/// The character `distance` behind the current one; NUL beyond the text.
char lexer::ahead(std::size_t distance) const {
  return at_ + distance < text_.size() ? text_[at_ + distance] : '\0';
}

void lexer::skip_digits() {
  while (is_digit(ahead(0))) ++at_;
}

token lexer::number(token t) {
  if (ahead(0) == '0' && ahead(1) && std::strchr("xXfFdDbB", ahead(1))) return prefixed_number(t);
  std::size_t digits = 1;
  while (is_digit(ahead(digits))) ++digits;
  const char behind = ahead(digits);
  return behind == '.' || behind == 'e' || behind == 'E' ? real_number(t) : whole_number(t);
}

/// 0x and 0b give an integer, 0f and 0d the bits of a real number.
token lexer::prefixed_number(token t) {
  const std::size_t start = at_, before = at_ + 2;
  const char mark = ahead(1);
  at_ = before;
  if (mark == 'b' || mark == 'B') {
    for (; ahead(0) == '0' || ahead(0) == '1'; ++at_) t.value = t.value << 1 | (ahead(0) == '1' ? 1u : 0u);
    const bool good = at_ > before && at_ - before <= 64;
    return finish_number(t, good ? token_kind::integer : token_kind::bad, start);
  }
  for (; hex_digit(ahead(0)) >= 0; ++at_) {
    t.value = t.value << 4 | static_cast<std::uint64_t>(hex_digit(ahead(0)));
  }
  const std::size_t digits = at_ - before;
  if (mark == 'x' || mark == 'X') {
    const bool good = digits >= 1 && digits <= 16;
    return finish_number(t, good ? token_kind::integer : token_kind::bad, start);
  }
  t.single = mark == 'f' || mark == 'F';
  // The bits are kept as written, because a conversion to double would quiet a signalling NaN.
  return finish_number(t, digits == (t.single ? 8u : 16u) ? token_kind::real : token_kind::bad, start);
}

/// Decimal digits; octal ones behind a 0, as in C.
token lexer::whole_number(token t) {
  const std::size_t start = at_;
  const std::uint64_t base = ahead(0) == '0' ? 8 : 10;
  skip_digits();
  for (std::size_t n = start; n < at_; ++n) {
    const auto digit = static_cast<std::uint64_t>(text_[n] - '0');
    std::uint64_t grown;
    if (digit >= base || __builtin_mul_overflow(t.value, base, &grown) ||
        __builtin_add_overflow(grown, digit, &t.value)) {
      return finish_number(t, token_kind::bad, start);
    }
  }
  return finish_number(t, token_kind::integer, start);
}

/// Decimal digits with a fraction, an exponent, or both.
token lexer::real_number(token t) {
  constexpr std::size_t most_characters = 200;
  const std::size_t start = at_;
  skip_digits();
  if (ahead(0) == '.') {
    ++at_;
    skip_digits();
  }
  if (ahead(0) == 'e' || ahead(0) == 'E') {
    ++at_;
    if (ahead(0) == '+' || ahead(0) == '-') ++at_;
    skip_digits();
  }
  if (at_ - start > most_characters) return finish_number(t, token_kind::bad, start);
  const std::string digits(text_.substr(start, at_ - start));
  t.value = std::bit_cast<std::uint64_t>(std::strtod(digits.c_str(), nullptr));
  return finish_number(t, token_kind::real, start);
}

/// Takes an integer's suffix; refuses a name directly behind the number, as in 12abc.
token lexer::finish_number(token t, token_kind kind, std::size_t start) {
  if (kind == token_kind::integer && ahead(0) == 'U') ++at_;
  t.kind = in_name(ahead(0)) ? token_kind::bad : kind;
  t.text = text_.substr(start, at_ - start);
  return t;
}

}  // namespace outboard::ptx
