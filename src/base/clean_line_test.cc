#include "base/clean_line.hh"

#include <gtest/gtest.h>

namespace outboard {
namespace {

TEST(clean_line, replaces_control_characters_and_line_separators) {
  EXPECT_EQ(clean_line("a\nb\x1b[31mc\x7f"), "a?b?[31mc?");
  EXPECT_EQ(clean_line("a\u0085b\u009b31mc\u2028d\u2029e"), "a?b?31mc?d?e");
  EXPECT_EQ(clean_line(std::string_view("\0", 1)), "?");
}

TEST(clean_line, replaces_marks_that_change_the_direction_of_writing) {
  EXPECT_EQ(clean_line("\u202egpj.exe\u202c \u2066a\u2069 \u200f\u061c"), "?gpj.exe? ?a? ??");
}

TEST(clean_line, leaves_other_characters_of_all_lengths_alone) {
  const std::string text = "a \u00e9 \u00a0 \u05d0\u05d1 \u2026 \u65e5\u672c \U0001f600 \U0010ffff";
  EXPECT_EQ(clean_line(text), text);
  EXPECT_EQ(clean_line(""), "");
}

TEST(clean_line, replaces_each_byte_that_is_not_utf8) {
  EXPECT_EQ(clean_line("a\xff\x80z"), "a??z");
  EXPECT_EQ(clean_line("\xc3"), "?") << "cut";
  EXPECT_EQ(clean_line("\xe2\x80"), "??") << "cut";
  EXPECT_EQ(clean_line("\xc0\x8a \xe0\x80\x8a"), "?? ???") << "a newline in more bytes than it needs";
  EXPECT_EQ(clean_line("\xed\xa0\x80 \xf4\x90\x80\x80"), "??? ????") << "no characters";
}

}  // namespace
}  // namespace outboard
