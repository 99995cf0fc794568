#include "wire/resume.hh"

#include <gtest/gtest.h>

namespace outboard::wire {
namespace {

session_secret secret_of(int first) {
  session_secret secret{};
  secret[0] = static_cast<std::byte>(first);
  return secret;
}

handshake_challenges challenges_of(int server, int client) {
  handshake_challenges fresh;
  fresh.server[0] = static_cast<std::byte>(server);
  fresh.client[0] = static_cast<std::byte>(client);
  return fresh;
}

resume_question sample() {
  resume_question m{7, resume_wish::resume, {}, 123456};
  m.stream[3] = 9;
  return m;
}

TEST(resume, terms_come_back) {
  const auto bytes = encode(resume_terms{secret_of(5), 60000});
  EXPECT_EQ(bytes.size(), resume_terms_size);
  const auto back = decode_resume_terms(bytes);
  ASSERT_TRUE(back.ok());
  EXPECT_EQ(back->secret, secret_of(5));
  EXPECT_EQ(back->linger_milliseconds, 60000u);
  EXPECT_FALSE(decode_resume_terms(std::span(bytes).first(35)).ok());
}

TEST(resume, a_question_is_proven_for_one_handshake) {
  const auto text = encode_resume_question(sample(), secret_of(1), challenges_of(2, 3));
  const auto back = decode_resume_question(text);
  ASSERT_TRUE(back.ok());
  EXPECT_EQ(back->question.session, 7u);
  EXPECT_EQ(back->question.arrived, 123456u);
  EXPECT_EQ(back->question.stream[3], 9);
  EXPECT_TRUE(is_proven(*back, secret_of(1), challenges_of(2, 3)));
  EXPECT_FALSE(is_proven(*back, secret_of(2), challenges_of(2, 3)));
  EXPECT_FALSE(is_proven(*back, secret_of(1), challenges_of(4, 3)));
  EXPECT_FALSE(is_proven(*back, secret_of(1), challenges_of(2, 4)));
}

TEST(resume, no_bit_of_a_question_can_change) {
  const auto text = encode_resume_question(sample(), secret_of(1), challenges_of(2, 3));
  for (std::size_t bit = 0; bit < text.size() * 8; ++bit) {
    std::string changed = text;
    changed[bit / 8] = static_cast<char>(changed[bit / 8] ^ (1 << (bit % 8)));
    const auto back = decode_resume_question(changed);
    EXPECT_FALSE(back.ok() && is_proven(*back, secret_of(1), challenges_of(2, 3))) << bit;
  }
  for (std::size_t size = 0; size < text.size(); ++size)
    EXPECT_FALSE(decode_resume_question(text.substr(0, size)).ok());
  EXPECT_FALSE(decode_resume_question(text + "x").ok());
}

TEST(resume, an_answer_comes_from_who_has_the_secret) {
  const auto content = encode_resume_answer(99, secret_of(1), challenges_of(2, 3));
  const auto back = decode_resume_answer(content, secret_of(1), challenges_of(2, 3));
  ASSERT_TRUE(back.ok());
  EXPECT_EQ(*back, 99u);
  EXPECT_FALSE(decode_resume_answer(content, secret_of(2), challenges_of(2, 3)).ok());
  EXPECT_FALSE(decode_resume_answer(content, secret_of(1), challenges_of(3, 2)).ok());
  EXPECT_FALSE(decode_resume_answer(std::span(content).first(39), secret_of(1), challenges_of(2, 3)).ok());
}

}  // namespace
}  // namespace outboard::wire
