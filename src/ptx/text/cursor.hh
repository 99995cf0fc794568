// A parser's place in the text: the current token, the first error, and what every part of the grammar needs.
// Base of declaration_parser; one thread.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "ptx/text/lexer.hh"
#include "ptx/text/tree.hh"

namespace outboard::ptx {

/// After the first error the current token is `end` for good, so every loop of the grammar stops.
class token_cursor {
 protected:
  explicit token_cursor(std::string_view text) : lexer_(text) {}

  void advance() {
    if (!ok_) return;
    before_end_ = now_.text.data() ? now_.text.data() + now_.text.size() : nullptr;
    now_ = lexer_.next();
    if (now_.kind == token_kind::bad)
      fail("unexpected character or malformed token '" + std::string(now_.text) + "'");
  }
  void fail(const std::string& what) { fail_at(now_.line, what); }
  void fail_at(std::uint32_t line, const std::string& what) {
    if (!ok_) return;
    ok_ = false;
    message_ = "line " + std::to_string(line) + ": " + what;
    now_ = token{};  // end: every loop stops
  }
  bool is(char c) const { return now_.kind == token_kind::punctuation && now_.text[0] == c; }
  bool is_directive(std::string_view name) const {
    return now_.kind == token_kind::directive && now_.text == name;
  }
  bool accept(char c) {
    if (!is(c)) return false;
    advance();
    return true;
  }
  bool accept_directive(std::string_view name) {
    if (!is_directive(name)) return false;
    advance();
    return true;
  }
  void expect(char c) {
    if (!ok_ || accept(c)) return;
    fail(std::string("expected '") + c + "', found '" + std::string(now_.text) + "'");
  }
  std::string_view expect_name() {
    if (now_.kind != token_kind::name)
      return fail("expected a name, found '" + std::string(now_.text) + "'"), "";
    const auto name = now_.text;
    advance();
    return name;
  }
  std::uint64_t expect_integer(std::uint64_t most) {
    if (now_.kind != token_kind::integer || now_.value > most) {
      return fail("expected an integer up to " + std::to_string(most) + ", found '" + std::string(now_.text) +
                  "'"),
             0;
    }
    const auto value = now_.value;
    advance();
    return value;
  }
  void skip_line() {
    const auto line = now_.line;
    while (ok_ && now_.kind != token_kind::end && now_.line == line) advance();
  }
  void skip_to_semicolon() {
    while (ok_ && now_.kind != token_kind::end && !is(';')) advance();
    expect(';');
  }

  operand literal(bool minus = false) {
    operand o;
    if (!minus) minus = accept('-');
    const bool invert = !minus && accept('~');
    if (!minus && !invert) accept('+');
    const bool again = accept('-');
    if (now_.kind == token_kind::integer) {
      o.kind = operand_kind::integer;
      auto bits = now_.value;
      if (minus != again) bits = 0 - bits;
      if (invert) bits = ~bits;
      o.value = static_cast<std::int64_t>(bits);
    } else if (now_.kind == token_kind::real) {
      o.kind = operand_kind::real;
      o.single = now_.single;
      const auto sign = now_.single ? std::uint64_t{1} << 31 : std::uint64_t{1} << 63;
      o.value = static_cast<std::int64_t>(now_.value ^ (minus != again ? sign : 0));
    } else {
      fail("expected a number, found '" + std::string(now_.text) + "'");
    }
    advance();
    return o;
  }

  lexer lexer_;
  token now_;
  const char* before_end_ = nullptr;
  bool ok_ = true;
  std::string message_;
};

}  // namespace outboard::ptx
