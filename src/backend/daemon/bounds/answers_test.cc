#include "backend/daemon/bounds/answers.hh"

#include <gtest/gtest.h>

#include <thread>

#include "wire/frame.hh"
#include "wire/hello.hh"

namespace outboard::backend {
namespace {

using namespace std::chrono_literals;

TEST(answers, are_shared_by_those_who_ask_the_same_while_they_are_fresh) {
  answers a;
  int made = 0;
  const auto slow = [&]() -> result<std::string> {
    std::this_thread::sleep_for(20ms);
    return std::to_string(++made);
  };
  const auto first = a.get("x", slow), second = a.get("x", slow), other = a.get("y", slow);
  ASSERT_TRUE(first.ok() && second.ok() && other.ok());
  EXPECT_EQ(first->get(), second->get());
  EXPECT_NE(first->get(), other->get());
  EXPECT_EQ(made, 2);
  std::this_thread::sleep_for(300ms);
  EXPECT_TRUE(a.get("x", slow).ok());
  EXPECT_EQ(made, 3) << "it was made in 20 ms, and fresh for about 200";
}

TEST(answers, are_whole_frames) {
  answers a;
  const auto shared = a.get("x", [] { return result<std::string>("the text"); });
  ASSERT_TRUE(shared.ok());
  const auto welcome = wire::decode_welcome(std::span(**shared).subspan(wire::header_size));
  ASSERT_TRUE(welcome.ok());
  EXPECT_EQ(std::string(reinterpret_cast<const char*>(welcome->content.data()), welcome->content.size()),
            "the text");
}

TEST(answers, say_so_when_too_much_is_unread) {
  answers a(1000);
  int number = 0;
  const auto ask = [&](std::size_t size) {
    return a.get(std::to_string(++number), [&] { return result<std::string>(std::string(size, 'x')); });
  };
  auto large = ask(5000);
  ASSERT_TRUE(large.ok()) << "a single one may be larger";
  EXPECT_GT(a.held(), 5000u);
  const auto refused = ask(10);
  ASSERT_FALSE(refused.ok());
  EXPECT_EQ(refused.error().next, action::retry);
  EXPECT_NE(refused.error().message.find("ask again in a second"), std::string::npos);
  EXPECT_TRUE(a.get("1", [] { return result<std::string>(failure("")); }).ok()) << "the same is still shared";
  *large = nullptr;
  std::this_thread::sleep_for(20ms);  // until it is no longer fresh
  EXPECT_TRUE(ask(10).ok());
  EXPECT_LT(a.held(), 1000u);
}

TEST(answers, of_a_question_that_has_none_are_not_kept) {
  answers a;
  EXPECT_EQ(a.get("x", [] { return result<std::string>(failure("unknown")); }).error().message, "unknown");
  EXPECT_TRUE(a.get("x", [] { return result<std::string>("known"); }).ok());
}

TEST(answers, of_acts_are_each_its_own_and_make_what_was_answered_before_stale) {
  answers a;
  int made = 0, done = 0;
  const auto slow = [&]() -> result<std::string> {
    std::this_thread::sleep_for(20ms);  // fresh for about 200
    return std::to_string(++made);
  };
  ASSERT_TRUE(a.get("x", slow).ok());
  EXPECT_FALSE(a.of_act([] { return result<std::string>(failure("no right")); }).ok());
  EXPECT_TRUE(a.get("x", slow).ok());
  EXPECT_EQ(made, 1) << "nothing was done";
  const auto act = [&]() -> result<std::string> { return std::to_string(++done); };
  const auto first = a.of_act(act), second = a.of_act(act);
  ASSERT_TRUE(first.ok() && second.ok());
  EXPECT_NE(**first, **second);
  EXPECT_EQ(done, 2);
  EXPECT_TRUE(a.get("x", slow).ok());
  EXPECT_EQ(made, 2);
}

TEST(answers, may_be_held_longer_than_the_daemon_lives) {
  shared_answer held;
  {
    answers a;
    held = *a.get("x", [] { return result<std::string>("text"); });
  }
  EXPECT_FALSE(held->empty());
}

}  // namespace
}  // namespace outboard::backend
