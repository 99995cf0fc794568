#include "api/cuda/line_words.hh"

#include <gtest/gtest.h>

namespace outboard::api {
namespace {

TEST(line_words, say_what_every_line_says) {
  std::size_t said = 0;
  for (const function_info& f : functions()) {
    const description& d = f.about;
    const bool refused = d.how == kind::refused;
    const auto same = [&](bool in_line, line_word word) {
      EXPECT_EQ(says(f.code, word), !refused && in_line) << f.name << ' ' << static_cast<unsigned>(word);
      said += !refused && in_line;
    };
    same(d.passes_frees, line_word::passes_frees);
    same(d.sends_frees, line_word::sends_frees);
    same(d.asks != completion::none, line_word::asks);
    same(d.light, line_word::light);
    same(d.no_work, line_word::no_work);
    same(d.loads_code, line_word::loads_code);
    same(d.makes_graph, line_word::makes_graph);
  }
  EXPECT_GT(said, 50u);
}

TEST(line_words, of_a_number_that_is_no_opcode_are_none) {
  for (const std::uint32_t code : {0u, 999u, 1999u, 62'999u, 63'000u, 64'000u, 0xffff'ffffu}) {
    ASSERT_EQ(find_function(code), nullptr) << code;
    for (unsigned bit = 1; bit < 256; bit *= 2)
      EXPECT_FALSE(says(static_cast<opcode>(code), static_cast<line_word>(bit))) << code << ' ' << bit;
  }
}

}  // namespace
}  // namespace outboard::api
