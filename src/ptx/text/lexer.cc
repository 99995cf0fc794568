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

token lexer::finish_number(token t, std::size_t start, token_kind kind) {
  if (kind == token_kind::integer && at_ < text_.size() && text_[at_] == 'U') ++at_;
  // 12abc is no number followed by a name
  if (at_ < text_.size() && in_name(text_[at_])) kind = token_kind::bad;
  t.kind = kind;
  t.text = text_.substr(start, at_ - start);
  return t;
}

token lexer::number(token t) {
  const std::size_t start = at_;
  const char mark = at_ + 1 < text_.size() ? text_[at_ + 1] : '\0';
  const auto hex = [&](std::size_t most) {
    std::size_t digits = 0;
    for (; at_ < text_.size() && hex_digit(text_[at_]) >= 0; ++at_, ++digits) {
      t.value = t.value << 4 | static_cast<std::uint64_t>(hex_digit(text_[at_]));
    }
    return digits >= 1 && digits <= most;
  };
  if (text_[at_] == '0' && (mark == 'x' || mark == 'X')) {
    at_ += 2;
    const bool good = hex(16);
    return finish_number(t, start, good ? token_kind::integer : token_kind::bad);
  }
  if (text_[at_] == '0' && (mark == 'f' || mark == 'F' || mark == 'd' || mark == 'D')) {
    t.single = mark == 'f' || mark == 'F';
    at_ += 2;
    const std::size_t before = at_;
    const bool good = hex(16) && at_ - before == (t.single ? 8u : 16u);
    // The bits are kept as written: a detour over double would quiet a signalling NaN.
    return finish_number(t, start, good ? token_kind::real : token_kind::bad);
  }
  if (text_[at_] == '0' && (mark == 'b' || mark == 'B')) {
    at_ += 2;
    const std::size_t before = at_;
    for (; at_ < text_.size() && (text_[at_] == '0' || text_[at_] == '1'); ++at_) {
      t.value = t.value << 1 | static_cast<std::uint64_t>(text_[at_] - '0');
    }
    return finish_number(t, start,
                         at_ > before && at_ - before <= 64 ? token_kind::integer : token_kind::bad);
  }
  return decimal_number(t);
}

token lexer::decimal_number(token t) {
  const std::size_t start = at_;
  while (at_ < text_.size() && is_digit(text_[at_])) ++at_;
  const bool fraction = at_ < text_.size() && text_[at_] == '.';
  const bool exponent = at_ < text_.size() && (text_[at_] == 'e' || text_[at_] == 'E');
  if (!fraction && !exponent) {
    const bool octal = text_[start] == '0';
    bool good = true;
    for (std::size_t n = start; n < at_; ++n) {
      const auto digit = static_cast<std::uint64_t>(text_[n] - '0');
      std::uint64_t grown;
      good &= !(octal && digit > 7) &&
              !__builtin_mul_overflow(t.value, octal ? std::uint64_t{8} : std::uint64_t{10}, &grown) &&
              !__builtin_add_overflow(grown, digit, &t.value);
      if (!good) break;
    }
    return finish_number(t, start, good ? token_kind::integer : token_kind::bad);
  }
  if (fraction) {
    ++at_;
    while (at_ < text_.size() && is_digit(text_[at_])) ++at_;
  }
  if (at_ < text_.size() && (text_[at_] == 'e' || text_[at_] == 'E')) {
    ++at_;
    if (at_ < text_.size() && (text_[at_] == '+' || text_[at_] == '-')) ++at_;
    while (at_ < text_.size() && is_digit(text_[at_])) ++at_;
  }
  if (at_ - start > 200) return finish_number(t, start, token_kind::bad);
  const std::string digits(text_.substr(start, at_ - start));
  t.value = std::bit_cast<std::uint64_t>(std::strtod(digits.c_str(), nullptr));
  return finish_number(t, start, token_kind::real);
}

}  // namespace outboard::ptx
