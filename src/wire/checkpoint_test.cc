#include "wire/checkpoint.hh"

#include <gtest/gtest.h>

namespace outboard::wire {
namespace {

checkpoint_question sample() {
  device_uuid from{}, to{};
  from[0] = std::byte{1}, to[15] = std::byte{2};
  return {checkpoint_step::restore, 4711, 250, {{from, to}}};
}

TEST(checkpoint, questions_and_answers_come_back) {
  const auto q = decode_checkpoint_question(encode(sample()));
  ASSERT_TRUE(q.ok());
  EXPECT_EQ(q->step, checkpoint_step::restore);
  EXPECT_EQ(q->process, 4711);
  EXPECT_EQ(q->milliseconds, 250u);
  EXPECT_EQ(q->devices, sample().devices);
  const auto a = decode_checkpoint_answer(encode(checkpoint_answer{true, 401, 2}));
  ASSERT_TRUE(a.ok());
  EXPECT_TRUE(a->known);
  EXPECT_EQ(a->code, 401);
  EXPECT_EQ(a->state, 2);
}

TEST(checkpoint, what_is_cut_or_counted_wrong_is_refused) {
  const std::string whole = encode(sample());
  for (std::size_t n = 0; n < whole.size(); ++n)
    EXPECT_FALSE(decode_checkpoint_question(whole.substr(0, n)).ok()) << n;
  EXPECT_FALSE(decode_checkpoint_question(whole + "x").ok());
  for (std::size_t bit = 0; bit < whole.size() * 8; ++bit) {
    std::string bent = whole;
    bent[bit / 8] = static_cast<char>(bent[bit / 8] ^ (1 << bit % 8));
    const auto q = decode_checkpoint_question(bent);
    EXPECT_TRUE(!q.ok() || q->devices.size() <= max_checkpoint_devices);
  }
  checkpoint_question many = sample();
  many.devices.resize(max_checkpoint_devices + 1);
  EXPECT_FALSE(decode_checkpoint_question(encode(many)).ok());
}

}  // namespace
}  // namespace outboard::wire
