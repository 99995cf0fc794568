#include "frontend/outbox.hh"

#include <gtest/gtest.h>

#include <array>

namespace outboard::frontend {
namespace {

using namespace std::chrono_literals;

constexpr std::array<std::byte, 40> frame{};

struct Outbox : testing::Test {
  bool post(pace how = pace::work) { return box.take({frame}, how, now); }
  /// As many as are sent by themselves before a burst is one.
  unsigned sent_singly(unsigned most) {
    unsigned sent = 0;
    for (; sent < most && !post(); ++sent) box.clear(false), now += 1us;
    return sent;
  }

  outbox box{[] { return true; }};
  outbox::clock::time_point now = outbox::clock::now();
};

TEST_F(Outbox, the_first_posts_after_an_answer_are_sent_at_once_and_those_of_a_burst_are_not) {
  const unsigned alone = sent_singly(100);
  EXPECT_GE(alone, 1u);
  EXPECT_LT(alone, 100u);
  EXPECT_EQ(box.gathered().size(), frame.size());
  box.clear(true);
  EXPECT_EQ(sent_singly(100), alone);
}

TEST_F(Outbox, an_answer_that_came_without_a_question_ends_a_burst) {
  const unsigned alone = sent_singly(100);
  box.clear(false);
  box.answered();
  EXPECT_EQ(sent_singly(100), alone);
}

TEST_F(Outbox, one_that_is_waited_for_does_not_wait_in_a_burst) {
  sent_singly(100);
  EXPECT_FALSE(post(pace::awaited));
  EXPECT_EQ(box.gathered().size(), frame.size()) << "it takes along what is gathered";
  EXPECT_TRUE(post());
}

TEST_F(Outbox, what_begins_no_work_waits_for_what_does) {
  EXPECT_TRUE(post(pace::light));
  EXPECT_FALSE(post());
  EXPECT_EQ(box.gathered().size(), frame.size());
}

TEST_F(Outbox, work_that_comes_seldom_never_waits) {
  for (int i = 0; i < 100; ++i) {
    EXPECT_FALSE(post());
    box.clear(false);
    now += outbox::quiet;
  }
}

TEST_F(Outbox, what_is_gathered_is_due_after_a_while_or_when_it_is_much) {
  sent_singly(100);
  EXPECT_FALSE(box.due(now));
  EXPECT_TRUE(box.due(now + outbox::late));
  while (box.gathered().size() < outbox::enough) ASSERT_TRUE(post());
  EXPECT_TRUE(box.due(now));
  box.clear(false);
  EXPECT_FALSE(box.due(now + 1s));
}

TEST_F(Outbox, what_is_large_does_not_wait_and_what_more_follows_does) {
  const std::vector<std::byte> large(outbox::small);
  EXPECT_FALSE(box.take({frame, large}, pace::followed, now));
  EXPECT_TRUE(post(pace::followed));
  EXPECT_FALSE(box.take({frame, large}, pace::followed, now));
  EXPECT_EQ(box.gathered().size(), frame.size());
}

TEST_F(Outbox, what_leaves_is_no_longer_gathered_and_stays_as_it_was_while_more_is) {
  sent_singly(100);
  const std::span<const std::byte> leaving = box.leave();
  EXPECT_EQ(leaving.size(), frame.size());
  EXPECT_TRUE(box.gathered().empty());
  constexpr std::array more{std::byte{7}, std::byte{7}};
  EXPECT_TRUE(box.take({more}, pace::work, now));
  EXPECT_EQ(leaving.front(), frame.front());
  EXPECT_EQ(box.gathered().size(), more.size());
}

TEST_F(Outbox, once_it_is_stopped_nothing_waits) {
  box.stop();
  EXPECT_EQ(sent_singly(100), 100u);
}

TEST(outbox, its_thread_looks_while_something_is_gathered_and_again_after_it_slept) {
  std::mutex sending;
  std::condition_variable emptied;
  std::function<bool()> look;
  outbox box([&] { return look(); });
  look = [&] {
    const std::lock_guard lock(sending);
    if (box.gathered().empty()) return false;
    EXPECT_FALSE(box.leave().empty());
    emptied.notify_all();
    return true;
  };
  for (int round = 0; round < 5; ++round) {
    std::unique_lock lock(sending);
    while (!box.take({frame}, pace::work, outbox::clock::now())) box.clear(false);
    EXPECT_TRUE(emptied.wait_for(lock, 10s, [&] { return box.gathered().empty(); })) << round;
    lock.unlock();
    std::this_thread::sleep_for(round % 2 ? 0ms : 20ms);  // beyond its last vain look
  }
}

}  // namespace
}  // namespace outboard::frontend
