// PTX text to tokens, one at a time. Owned by a parser, one thread. Views point into the text.
#pragma once

#include <cstdint>
#include <string_view>

namespace outboard::ptx {

enum class token_kind : std::uint8_t {
  end,
  name,       ///< add.s32, %r1, $L_1, _ZN: dots and :: inside belong to it
  directive,  ///< .visible, .b32 (text without the dot)
  integer,
  real,  ///< the bits of a double in `value`; `single` when written as 0f
  string,
  punctuation,  ///< one character, in text[0]
  bad,          ///< a character PTX does not know, or an unclosed string or comment
};

struct token {
  token_kind kind = token_kind::end;
  bool single = false;
  std::string_view text;
  std::uint64_t value = 0;
  std::uint32_t line = 0;
};

class lexer {
 public:
  explicit lexer(std::string_view text) : text_(text) {}
  token next();

 private:
  bool skip_blank();
  token number(token t);
  token decimal_number(token t);  ///< one without a prefix
  /// Takes the suffix of a number that began at `start`; bad when a name follows without a blank.
  token finish_number(token t, std::size_t start, token_kind kind);

  std::string_view text_;
  std::size_t at_ = 0;
  std::uint32_t line_ = 1;
};

}  // namespace outboard::ptx
