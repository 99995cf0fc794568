// A driver that waits inside a call until a host function of the client has finished. A real one does so when
// it loads a module, frees memory, or has no room for work behind the function (a 580 driver has room for
// 1021 launches). The client's answer, and the requests that it must make before it can answer, must still be
// served.
#include <condition_variable>
#include <future>

#include "loopback_session.hh"

namespace outboard::tests {
namespace {

using any_device = ::outboard::device::device;

/// Host functions run on threads of their own; some calls wait until none runs. A test's host function can
/// wait in turn until such a call has come, so that the two certainly meet.
class driver_at_work {
 public:
  void enter() { change(1); }
  void leave() { change(-1); }
  void wait_until_none_runs() {
    std::unique_lock lock(mutex_);
    ++waiting_;
    changed_.notify_all();
    changed_.wait(lock, [&] { return running_ == 0; });
    --waiting_;
  }
  /// False if no call waits within 20 s, which only happens if the session hangs.
  bool wait_until_a_call_waits() {
    std::unique_lock lock(mutex_);
    return changed_.wait_for(lock, 20s, [&] { return waiting_ > 0; });
  }

 private:
  void change(int by) {
    const std::lock_guard lock(mutex_);
    running_ += by;
    changed_.notify_all();
  }
  std::mutex mutex_;
  std::condition_variable changed_;
  int running_ = 0, waiting_ = 0;
};

driver_at_work& at_work() {
  static driver_at_work one;
  return one;
}

class waiting_device : public any_device {
 public:
  explicit waiting_device(const any_device& inner) : inner_(inner), table_(inner.cuda()) {
    table_.cuLaunchHostFunc = [](CUstream, CUhostFn function, void* data) {
      at_work().enter();
      std::thread([=] {
        function(data);
        at_work().leave();
      }).detach();
      return CUDA_SUCCESS;
    };
    table_.cuCtxSetLimit = [](CUlimit, std::size_t) {
      return at_work().wait_until_none_runs(), CUDA_SUCCESS;
    };
    table_.cuMemsetD8Async = [](CUdeviceptr, unsigned char, std::size_t, CUstream) {
      return at_work().wait_until_none_runs(), CUDA_SUCCESS;
    };
    table_.cuCtxSynchronize = [] { return at_work().wait_until_none_runs(), CUDA_SUCCESS; };
  }
  std::string_view kind() const override { return inner_.kind(); }
  std::string describe() const override { return inner_.describe(); }
  const api::driver_table& cuda() const override { return table_; }

 private:
  const any_device& inner_;
  api::driver_table table_;
};

class blocked_driver : public loopback_session {
 protected:
  any_device& used() override {
    if (!waiting_) waiting_ = std::make_unique<waiting_device>(*mock_);
    return *waiting_;
  }
  void TearDown() override {
    if (session_) session_->goodbye();
    if (client_.joinable()) client_.join();
    at_work().wait_until_none_runs();
    loopback_session::TearDown();
  }

  /// Starts the client's thread of host functions: it runs `body`, then answers.
  void answer_with(std::function<void()> body) {
    client_ = std::thread([this, body = std::move(body)] {
      while (const auto order = session_->next_callback()) {
        if (order->errand.what == marshal::errand::run) body();
        session_->answer_callback(order->number, {});
      }
    });
  }
  CUresult launch_host_function(std::uint32_t lane) {
    session_->expect_callbacks(1);
    return post(lane, opcode::cuLaunchHostFunc, marshal::host_function_body{0, ++functions_, false, false});
  }
  CUresult set_limit(std::uint32_t lane) {
    return call(lane, opcode::cuCtxSetLimit, encoded(marshal::limit_body{CU_LIMIT_STACK_SIZE, 1024}));
  }
  CUresult fill(std::uint32_t lane) {
    const auto payload =
        generated<opcode::cuMemsetD8Async>(0, static_cast<CUdeviceptr>(0x1000), static_cast<unsigned char>(0),
                                           static_cast<std::size_t>(1), static_cast<CUstream>(nullptr));
    return session_->post(request(lane, opcode::cuMemsetD8Async, payload));
  }
  /// Exchanges host memory as a front-end does before and after a host function, from a thread without a
  /// context.
  CUresult fetch_and_update(std::uint32_t lane) {
    const auto ask = encoded(marshal::fetch_body{});
    std::vector<std::byte> reply;
    const CUresult code =
        session_->call({static_cast<std::uint32_t>(marshal::service::memory_fetch), lane, 0, ask, {}}, reply);
    if (code != CUDA_SUCCESS) return code;
    return session_->post({static_cast<std::uint32_t>(marshal::service::memory_update), lane, 0, {}, {}});
  }

  std::unique_ptr<waiting_device> waiting_;
  std::thread client_;
  std::uint64_t functions_ = 0;
};

TEST_F(blocked_driver, a_call_that_waits_for_a_host_function_ends) {
  start_client();
  std::atomic<int> ran{0};
  answer_with([&] {
    EXPECT_TRUE(at_work().wait_until_a_call_waits());
    ++ran;
  });
  for (int i = 1; i <= 5; ++i) {
    ASSERT_EQ(launch_host_function(1), CUDA_SUCCESS);
    EXPECT_EQ(set_limit(1), CUDA_SUCCESS);
    EXPECT_EQ(ran.load(), i);
  }
}

TEST_F(blocked_driver, a_call_ends_though_the_function_exchanges_memory) {
  start_client();
  std::atomic<int> ran{0};
  answer_with([&] {
    EXPECT_TRUE(at_work().wait_until_a_call_waits());
    ran += fetch_and_update(77) == CUDA_SUCCESS;
  });
  for (int i = 1; i <= 5; ++i) {
    ASSERT_EQ(launch_host_function(1), CUDA_SUCCESS);
    EXPECT_EQ(set_limit(1), CUDA_SUCCESS);
    EXPECT_EQ(ran.load(), i);
  }
}

TEST_F(blocked_driver, a_post_that_waits_for_a_host_function_ends_whatever_follows) {
  start_client();
  std::atomic<int> ran{0};
  answer_with([&] {
    EXPECT_TRUE(at_work().wait_until_a_call_waits());
    ran += fetch_and_update(77) == CUDA_SUCCESS;
  });
  for (int i = 1; i <= 5; ++i) {
    ASSERT_EQ(launch_host_function(1), CUDA_SUCCESS);
    ASSERT_EQ(fill(1), CUDA_SUCCESS);
    std::thread([&] { ASSERT_EQ(create_event(2, static_cast<std::uint32_t>(i)), CUDA_SUCCESS); }).join();
    for (int k = 0; k < 3; ++k) ASSERT_EQ(fill(1), CUDA_SUCCESS);
    EXPECT_EQ(synchronize(1), CUDA_SUCCESS);
    EXPECT_EQ(ran.load(), i);
  }
}

/// The post stands for one that unloads a module or unmaps memory: its lane does not pass on the turn for it,
/// and the next request of its thread must find a reader.
TEST_F(blocked_driver, a_post_that_waits_without_passing_the_turn_blocks_nobody) {
  start_client();
  std::atomic<int> ran{0};
  answer_with([&] {
    EXPECT_TRUE(at_work().wait_until_a_call_waits());
    ran += fetch_and_update(77) == CUDA_SUCCESS;
  });
  for (int i = 1; i <= 5; ++i) {
    ASSERT_EQ(launch_host_function(1), CUDA_SUCCESS);
    ASSERT_EQ(session_->post(request(1, opcode::cuCtxSynchronize, {})), CUDA_SUCCESS);
    ASSERT_EQ(create_event(1, static_cast<std::uint32_t>(i)), CUDA_SUCCESS);
    EXPECT_EQ(synchronize(1), CUDA_SUCCESS);
    EXPECT_EQ(ran.load(), i);
  }
}

TEST_F(blocked_driver, many_posts_can_follow_while_a_call_waits) {
  start_client();
  std::promise<void> all_are_sent;
  answer_with([sent = all_are_sent.get_future().share()] {
    EXPECT_EQ(sent.wait_for(20s), std::future_status::ready);
    EXPECT_TRUE(at_work().wait_until_a_call_waits());
  });
  ASSERT_EQ(launch_host_function(1), CUDA_SUCCESS);
  for (int i = 0; i < 20'000; ++i) ASSERT_EQ(fill(1), CUDA_SUCCESS);
  all_are_sent.set_value();
  EXPECT_EQ(synchronize(1), CUDA_SUCCESS);
}

TEST_F(blocked_driver, a_thread_that_asks_again_before_its_reply_ends_the_session) {
  start_client();
  std::promise<void> session_ended;
  answer_with([ended = session_ended.get_future().share()] {
    EXPECT_EQ(ended.wait_for(20s), std::future_status::ready);
  });
  ASSERT_EQ(launch_host_function(1), CUDA_SUCCESS);
  std::thread waiting([&] { EXPECT_EQ(synchronize(2), CUDA_ERROR_DEVICE_UNAVAILABLE); });
  EXPECT_TRUE(at_work().wait_until_a_call_waits());
  EXPECT_EQ(create_event(2, 1), CUDA_SUCCESS);  // violates the protocol
  waiting.join();
  session_ended.set_value();
  EXPECT_TRUE(session_->lost());
}

}  // namespace
}  // namespace outboard::tests
