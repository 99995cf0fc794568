// Posts over a connection whose sends are dear: a burst leaves in few of them, in order, and by itself when
// nobody waits for an answer. Meant for TSan as well.
#include "loopback_session.hh"

namespace outboard::tests {
namespace {

/// Says that each send is a system call, and counts.
class counting_connection final : public transport::connection {
 public:
  counting_connection(std::unique_ptr<connection> inner, std::atomic<unsigned>& sends)
      : inner_(std::move(inner)), sends_(sends), what_(inner_->what()) {
    what_.send_is_a_call = true;
  }
  const transport::capabilities& what() const override { return what_; }
  transport::io_result send(std::span<const iovec> parts, transport::deadline until) override {
    ++sends_;
    return inner_->send(parts, until);
  }
  transport::io_result receive(std::span<std::byte> into, transport::deadline until) override {
    return inner_->receive(into, until);
  }
  transport::io wait_readable(transport::deadline until) override { return inner_->wait_readable(until); }
  void interrupt() override { inner_->interrupt(); }
  bool peer_gone() override { return inner_->peer_gone(); }
  void shutdown() override { inner_->shutdown(); }
  void set_spin(std::chrono::microseconds budget) override { inner_->set_spin(budget); }
  std::string describe() const override { return inner_->describe(); }

 private:
  std::unique_ptr<connection> inner_;
  std::atomic<unsigned>& sends_;
  transport::capabilities what_;
};

class gathered_posts : public loopback_session {
 protected:
  void start_counting() {
    client_end_ = std::make_unique<counting_connection>(std::move(client_end_), sends_);
    start_client();
  }

  bool executed(unsigned events) {
    const auto until = std::chrono::steady_clock::now() + 20s;
    while (mock_->calls("cuEventCreate") < events && std::chrono::steady_clock::now() < until)
      std::this_thread::sleep_for(1ms);
    return mock_->calls("cuEventCreate") == events;
  }

  std::atomic<unsigned> sends_{0};
};

TEST_F(gathered_posts, a_burst_is_few_sends_and_all_of_it_arrives_though_nobody_asks) {
  start_counting();
  constexpr unsigned posts = 5000;
  for (unsigned i = 0; i < posts; ++i) ASSERT_EQ(create_event(1, i), CUDA_SUCCESS);
  EXPECT_TRUE(executed(posts));
  EXPECT_LT(sends_.load(), posts / 2);
}

TEST_F(gathered_posts, a_call_finds_done_what_was_posted_before_it_by_whomever) {
  start_counting();
  constexpr unsigned rounds = 200, each = 10;
  for (unsigned round = 0; round < rounds; ++round) {
    std::thread([&] {
      for (unsigned i = 0; i < each; ++i) ASSERT_EQ(create_event(2, round * each + i), CUDA_SUCCESS);
    }).join();
    EXPECT_EQ(synchronize(1), CUDA_SUCCESS);
    ASSERT_EQ(mock_->calls("cuEventCreate"), (round + 1) * each);
  }
}

TEST_F(gathered_posts, threads_that_post_and_ask_at_once_lose_nothing) {
  start_counting();
  constexpr unsigned threads = 4, each = 2000;
  std::vector<std::thread> all;
  for (unsigned t = 0; t < threads; ++t) {
    all.emplace_back([this, t] {
      for (unsigned i = 0; i < each; ++i) {
        ASSERT_EQ(create_event(2 + t, t * each + i), CUDA_SUCCESS);
        if (i % 500 != t) continue;
        ASSERT_EQ(synchronize(2 + t), CUDA_SUCCESS);
      }
    });
  }
  for (std::thread& t : all) t.join();
  EXPECT_TRUE(executed(threads * each));
}

TEST_F(gathered_posts, the_end_of_the_session_takes_them_along) {
  start_counting();
  constexpr unsigned posts = 300;
  for (unsigned i = 0; i < posts; ++i) ASSERT_EQ(create_event(1, i), CUDA_SUCCESS);
  session_->goodbye();
  EXPECT_TRUE(executed(posts));
}

TEST_F(gathered_posts, a_session_that_is_over_takes_no_more_and_its_thread_ends) {
  start_counting();
  for (unsigned i = 0; i < 100; ++i) ASSERT_EQ(create_event(1, i), CUDA_SUCCESS);
  EXPECT_EQ(synchronize(1), CUDA_SUCCESS);
  session_->goodbye();
  EXPECT_EQ(create_event(1, 100), CUDA_ERROR_DEVICE_UNAVAILABLE);
  session_.reset();
}

}  // namespace
}  // namespace outboard::tests
