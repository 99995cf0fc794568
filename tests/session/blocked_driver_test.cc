// A driver that waits, inside a call, for a host function of the client to finish: as a real one does when it
// loads a module, frees memory, or has no room behind the function (on a 580 driver 1021 launches). The
// client's answer, and what the client must ask before it can answer, get through all the same. So do words
// of memory that both sides have, for which a stream may wait that the driver waits for.
#include <condition_variable>

#include "base/sanitizers.hh"
#include "loopback_session.hh"
#include "marshal/cuda/memory_changes.hh"

namespace outboard::tests {
namespace {

using any_device = ::outboard::device::device;

/// The worker lives in this process: it page-locks memory of its own here, and the client has none.
constexpr std::uint64_t words = under_tsan ? 0x7e8c'0000'0000 : 0x208c'0000'0000, words_size = 4096;
constexpr std::size_t answer_at = 1024;

/// Host functions run on threads of their own; some calls wait until none runs.
class driver_at_work {
 public:
  void enter() { change(1); }
  void leave() { change(-1); }
  void wait_until_none_runs() {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [&] { return running_ == 0; });
  }
  /// Calls that wait also tell a word, and wait for one of the client's.
  void exchange_words(bool on) { exchanges_ = on; }
  CUresult await_answer() {
    if (!exchanges_) return CUDA_SUCCESS;
    std::atomic_ref(*reinterpret_cast<std::uint32_t*>(words)).store(1);
    const std::atomic_ref answer(*reinterpret_cast<std::uint32_t*>(words + answer_at));
    const auto end = std::chrono::steady_clock::now() + 5s;
    while (answer.load() == 0 && std::chrono::steady_clock::now() < end) std::this_thread::sleep_for(1ms);
    return answer.load() != 0 ? CUDA_SUCCESS : CUDA_ERROR_NOT_READY;
  }

 private:
  void change(int by) {
    const std::lock_guard lock(mutex_);
    running_ += by;
    changed_.notify_all();
  }
  std::mutex mutex_;
  std::condition_variable changed_;
  int running_ = 0;
  std::atomic<bool> exchanges_{false};
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
      return at_work().wait_until_none_runs(), at_work().await_answer();
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
    at_work().exchange_words(false);
    at_work().wait_until_none_runs();
    loopback_session::TearDown();
  }

  /// The client's thread of host functions: `body`, then the answer.
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
  /// What a program's host memory needs before and after a host function, from a thread without a context.
  CUresult fetch_and_update(std::uint32_t lane) {
    std::vector<std::byte> changes;
    const CUresult code = fetch(lane, changes);
    return code == CUDA_SUCCESS ? update(lane, {}) : code;
  }
  CUresult fetch(std::uint32_t lane, std::vector<std::byte>& changes) {
    const auto ask = encoded(marshal::fetch_body{});
    std::vector<std::byte> reply;
    const CUresult code =
        session_->call({static_cast<std::uint32_t>(marshal::service::memory_fetch), lane, 0, ask, {}}, reply);
    wire::reader from(reply);
    if (code == CUDA_SUCCESS) marshal::take_body<marshal::fetch_body>(from);
    changes.assign(from.rest().begin(), from.rest().end());
    return code;
  }
  CUresult update(std::uint32_t lane, std::span<const std::byte> changes) {
    return session_->post(
        {static_cast<std::uint32_t>(marshal::service::memory_update), lane, 0, {}, changes});
  }

  std::unique_ptr<waiting_device> waiting_;
  std::thread client_;
  std::uint64_t functions_ = 0;
};

TEST_F(blocked_driver, a_call_that_waits_for_a_host_function_ends) {
  start_client();
  std::atomic<int> ran{0};
  answer_with([&] {
    std::this_thread::sleep_for(20ms);
    ++ran;
  });
  for (int i = 1; i <= 5; ++i) {
    ASSERT_EQ(launch_host_function(1), CUDA_SUCCESS);
    EXPECT_EQ(set_limit(1), CUDA_SUCCESS);
    EXPECT_EQ(ran.load(), i);
  }
}

TEST_F(blocked_driver, also_when_the_function_needs_memory_that_both_sides_see) {
  start_client();
  std::atomic<int> ran{0};
  answer_with([&] {
    std::this_thread::sleep_for(20ms);
    ran += fetch_and_update(77) == CUDA_SUCCESS;
  });
  for (int i = 1; i <= 5; ++i) {
    ASSERT_EQ(launch_host_function(1), CUDA_SUCCESS);
    EXPECT_EQ(set_limit(1), CUDA_SUCCESS);
    EXPECT_EQ(ran.load(), i);
  }
}

TEST_F(blocked_driver, a_post_that_waits_for_a_host_function_ends_whatever_follows_it) {
  start_client();
  std::atomic<int> ran{0};
  answer_with([&] {
    std::this_thread::sleep_for(20ms);
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

/// A module is unloaded, or memory unmapped, by a post: it gives the turn to nobody, and the next request of
/// its thread finds a reader.
TEST_F(blocked_driver, a_post_whose_handler_would_wait_elsewhere_holds_nobody_up_for_ever) {
  start_client();
  std::atomic<int> ran{0};
  answer_with([&] {
    std::this_thread::sleep_for(20ms);
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

/// No host function is expected: words have no place among the requests, and no other request gets through.
TEST_F(blocked_driver, words_go_both_ways_while_a_call_is_inside) {
  start_client();
  ASSERT_EQ(call(1, opcode::cuMemHostGetDevicePointer_v2,
                 encoded(marshal::host_map_body{words, words_size, 0, marshal::host_block::pinned})),
            CUDA_SUCCESS);
  at_work().exchange_words(true);
  std::thread inside([&] { EXPECT_EQ(set_limit(1), CUDA_SUCCESS); });
  std::vector<std::byte> seen;
  for (const auto end = std::chrono::steady_clock::now() + 5s;
       seen.empty() && std::chrono::steady_clock::now() < end;)
    EXPECT_EQ(fetch(2, seen), CUDA_SUCCESS);
  EXPECT_FALSE(seen.empty());
  std::vector<std::byte> memory(words_size), shadow(words_size), answer;
  memory[answer_at] = std::byte{1};
  marshal::find_changes(words, memory, shadow, 0, words_size * 2, ~0ull >> 1, answer);
  EXPECT_EQ(update(2, answer), CUDA_SUCCESS);
  inside.join();
}

TEST_F(blocked_driver, much_is_sent_meanwhile) {
  start_client();
  answer_with([&] { std::this_thread::sleep_for(50ms); });
  ASSERT_EQ(launch_host_function(1), CUDA_SUCCESS);
  for (int i = 0; i < 20'000; ++i) ASSERT_EQ(fill(1), CUDA_SUCCESS);
  EXPECT_EQ(synchronize(1), CUDA_SUCCESS);
}

TEST_F(blocked_driver, a_thread_that_asks_again_before_its_reply_ends_the_session) {
  start_client();
  answer_with([] { std::this_thread::sleep_for(300ms); });
  ASSERT_EQ(launch_host_function(1), CUDA_SUCCESS);
  std::thread waiting([&] { EXPECT_EQ(synchronize(2), CUDA_ERROR_DEVICE_UNAVAILABLE); });
  std::this_thread::sleep_for(100ms);
  EXPECT_EQ(create_event(2, 1), CUDA_SUCCESS);  // a peer that does not keep to the protocol
  waiting.join();
  EXPECT_TRUE(session_->lost());
}

}  // namespace
}  // namespace outboard::tests
