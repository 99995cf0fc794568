#include "wire/munge_proof.hh"

#include <gtest/gtest.h>

#include "wire/features.hh"
#include "wire/hello.hh"

namespace outboard::wire {
namespace {

struct munge_proof : testing::Test {
  munge_proof() {
    asks.features = feature_munge;
    asks.program = "app";
    question = ask_munge(encode(asks), greeting);
    shows = asks;
    shows.credential = "MUNGE:pretended:";
  }
  std::optional<seal> checked(const hello& m, std::span<const std::byte> at) const {
    return check_munge(question.content, encode(m), m.credential.size(), at);
  }
  const std::vector<std::byte> greeting = encode(wire::greeting{.product = "outboard 9"});
  hello asks, shows;
  munge_question question;
};

TEST_F(munge_proof, is_good_for_its_hello_and_greeting_alone) {
  EXPECT_EQ(checked(shows, greeting), question.seal);
  std::vector<std::byte> other = greeting;
  other.back() ^= std::byte{1};
  EXPECT_EQ(checked(shows, other), std::nullopt);
  hello changed = shows;
  changed.program = "apq";
  EXPECT_EQ(checked(changed, greeting), std::nullopt);
}

TEST_F(munge_proof, has_another_secret_each_time) {
  EXPECT_NE(ask_munge(encode(asks), greeting).seal, question.seal);
}

TEST_F(munge_proof, refuses_contents_that_are_cut_or_longer_and_any_changed_bit) {
  const auto good = question.content;
  for (const std::size_t size : {std::size_t{0}, std::size_t{32}, good.size() - 1, good.size() + 1}) {
    question.content = good;
    question.content.resize(size);
    EXPECT_EQ(checked(shows, greeting), std::nullopt) << size;
  }
  for (std::size_t bit = 0; bit < good.size() * 8; ++bit) {
    question.content = good;
    question.content[bit / 8] ^= static_cast<std::byte>(1u << (bit % 8));
    EXPECT_NE(checked(shows, greeting), question.seal) << bit;
  }
  EXPECT_EQ(check_munge(good, std::span(good).first(4), 16, greeting), std::nullopt);
}

TEST_F(munge_proof, travels_at_the_end_of_a_hello_that_says_so) {
  const auto decoded = decode_hello(encode(shows));
  ASSERT_TRUE(decoded.ok());
  EXPECT_EQ(decoded->credential, shows.credential);
  hello without = shows;
  without.features = 0;
  EXPECT_EQ(decode_hello(encode(without))->credential, "");
  std::vector<std::byte> cut = encode(shows);
  cut.pop_back();
  EXPECT_FALSE(decode_hello(cut).ok());
}

}  // namespace
}  // namespace outboard::wire
