#include "wire/data_connection.hh"

#include <gtest/gtest.h>

namespace outboard::wire {
namespace {

TEST(data_connection, questions_and_answers_come_back) {
  const auto session = decode_data_question(encode_data_question(0x1122334455667788));
  ASSERT_TRUE(session.ok());
  EXPECT_EQ(*session, 0x1122334455667788u);
  data_token token{};
  token[0] = 1, token[31] = 2;
  const auto back = decode_data_answer(encode_data_answer(token));
  ASSERT_TRUE(back.ok());
  EXPECT_EQ(*back, token);
}

TEST(data_connection, other_lengths_are_refused) {
  const std::string question = encode_data_question(7);
  for (std::size_t n = 0; n < question.size(); ++n)
    EXPECT_FALSE(decode_data_question(question.substr(0, n)).ok()) << n;
  EXPECT_FALSE(decode_data_question(question + "x").ok());
  std::vector<std::byte> answer = encode_data_answer({});
  answer.pop_back();
  EXPECT_FALSE(decode_data_answer(answer).ok());
  answer.resize(33);
  EXPECT_FALSE(decode_data_answer(answer).ok());
}

}  // namespace
}  // namespace outboard::wire
