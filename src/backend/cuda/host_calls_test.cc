#include "backend/cuda/host_calls.hh"

#include <gtest/gtest.h>

#include <array>
#include <atomic>
#include <condition_variable>
#include <deque>
#include <mutex>
#include <thread>

namespace outboard::backend {
namespace {

using marshal::errand;

/// The client's side: what was asked, in order.
class host_calls_test : public testing::Test {
 protected:
  struct question {
    std::uint64_t number = 0;
    marshal::callback_body body;
  };

  question next() {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [&] { return !asked_.empty(); });
    question q = asked_.front();
    asked_.pop_front();
    return q;
  }

  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<question> asked_;
  std::vector<std::uint64_t> sent_;
  std::atomic<int> flushes_{0};
  std::mutex sending_;  // held by a test: no block is sent
  std::atomic<bool> sends_{false};
  host_calls calls_{{[this] { ++flushes_; },
                     [this](const boxed_bytes& b) {
                       sends_ = true;
                       const std::lock_guard sending(sending_);
                       const std::lock_guard lock(mutex_);
                       sent_.push_back(b.id);
                     },
                     [this](std::uint64_t number, const marshal::callback_body& body) {
                       const std::lock_guard lock(mutex_);
                       asked_.push_back({number, body});
                       changed_.notify_all();
                     },
                     [] {}}};
};

TEST_F(host_calls_test, the_stream_is_held_until_the_client_answers) {
  std::atomic<bool> over{false};
  auto* f = calls_.make(7, true);
  std::thread stream([&] {
    host_calls::run(f);
    over = true;
  });
  const question q = next();
  EXPECT_EQ(q.body.what, errand::run);
  EXPECT_EQ(q.body.id, 7u);
  EXPECT_TRUE(q.body.last);
  EXPECT_EQ(flushes_, 1);
  EXPECT_TRUE(calls_.waiting());
  EXPECT_FALSE(over);
  EXPECT_FALSE(calls_.answered(q.number + 1, {}));
  EXPECT_TRUE(calls_.answered(q.number, {}));
  stream.join();
  EXPECT_FALSE(calls_.answered(q.number, {}));
  EXPECT_FALSE(calls_.waiting());
}

TEST_F(host_calls_test, the_end_of_the_session_releases_the_stream) {
  auto* f = calls_.make(7, true);
  std::thread stream([&] { host_calls::run(f); });
  next();
  calls_.end();
  stream.join();
  host_calls::run(calls_.make(8, true));  // returns at once
}

TEST_F(host_calls_test, bytes_go_before_the_question_and_come_with_the_answer) {
  std::array<std::byte, 4> seen{}, wanted{};
  auto* own = calls_.make(7, false);
  auto* f = host_calls::with_blocks(*own, {{11, 4, 4, seen.data()}}, {{12, 4, 4, wanted.data()}});
  std::thread stream([&] { host_calls::run(f); });
  const question q = next();
  EXPECT_EQ(sent_, std::vector<std::uint64_t>{11});
  EXPECT_EQ(q.body.wanted, std::vector<std::uint64_t>{12});
  const std::array<std::byte, 4> answer{std::byte{1}, std::byte{2}, std::byte{3}, std::byte{4}};
  EXPECT_TRUE(calls_.answered(q.number, answer));
  stream.join();
  EXPECT_EQ(wanted, answer);
  host_calls::destroyed(f);
  host_calls::destroyed(own);  // the client forgets it once
  EXPECT_EQ(next().body.what, errand::forget);
}

TEST_F(host_calls_test, an_answer_of_the_wrong_size_is_none) {
  std::array<std::byte, 4> wanted{};
  auto* own = calls_.make(7, false);
  auto* f = host_calls::with_blocks(*own, {}, {{12, 4, 4, wanted.data()}});
  std::thread stream([&] { host_calls::run(f); });
  const question q = next();
  EXPECT_FALSE(calls_.answered(q.number, std::array<std::byte, 3>{}));
  calls_.end();
  stream.join();
  host_calls::destroyed(f);
  host_calls::destroyed(own);
}

TEST_F(host_calls_test, the_end_of_a_launch_sends_what_was_written) {
  std::array<std::byte, 4> written{};
  host_calls::run_end(calls_.make_end({{21, 4, 4, written.data()}}, nullptr));
  EXPECT_EQ(sent_, std::vector<std::uint64_t>{21});
  const question q = next();
  EXPECT_EQ(q.number, 0u);
  EXPECT_TRUE(q.body.last);
}

TEST_F(host_calls_test, what_is_only_told_has_no_answer) {
  std::array<std::byte, 4> written{};
  std::atomic<bool> over{false};
  sending_.lock();  // the end of the launch is under way
  std::thread stream([&] {
    host_calls::run_end(calls_.make_end({{21, 4, 4, written.data()}}, nullptr));
    over = true;
  });
  while (!sends_) std::this_thread::yield();
  EXPECT_FALSE(calls_.answered(1, {}));
  EXPECT_FALSE(over);
  sending_.unlock();
  stream.join();
}

/// The function may have changed the place meanwhile.
TEST_F(host_calls_test, the_end_of_a_launch_sends_no_more_what_a_function_has_seen) {
  std::array<std::byte, 4> first{}, second{};
  const boxed_bytes seen{11, 4, 4, first.data()}, other{12, 4, 4, second.data()};
  auto* own = calls_.make(7, false);
  auto* f = host_calls::with_blocks(*own, {seen}, {});
  for (int launch = 0; launch < 2; ++launch) {
    sent_.clear();
    std::thread stream([&] { host_calls::run(f); });
    EXPECT_TRUE(calls_.answered(next().number, {}));
    stream.join();
    host_calls::run_end(calls_.make_end({seen, other}, nullptr));
    next();
    EXPECT_EQ(sent_, (std::vector<std::uint64_t>{11, 12})) << "launch " << launch;
  }
  host_calls::destroyed(f);
  host_calls::destroyed(own);
}

}  // namespace
}  // namespace outboard::backend
