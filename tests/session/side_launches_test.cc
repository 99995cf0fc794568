// Threads that launch on streams of their own: their lanes' threads make the launches beside each other, and
// nobody can tell but by the time. Meant for TSan as well.
#include <map>
#include <mutex>
#include <random>

#include "loopback_session.hh"

namespace outboard::tests {
namespace {

class side_launches : public loopback_session {
 protected:
  void adjust(backend::session_request& request, backend::cuda_terms&) override {
    request.lanes_always_aside = true;
  }

  static std::uint64_t stream(std::uint32_t n) { return wire::handle::make(6, n, 1).value; }

  /// A kernel, and `streams` streams, each made by the lane 10 + its number, which so has a thread with a
  /// context.
  void start(std::uint32_t streams) {
    start_client();
    load(".visible .entry k() { ret; }\n");
    for (std::uint32_t n = 0; n < streams; ++n) {
      CUstream out = nullptr;
      ASSERT_EQ(call(10 + n, opcode::cuStreamCreate,
                     generated<opcode::cuStreamCreate>(stream(n), &out, CU_STREAM_NON_BLOCKING)),
                CUDA_SUCCESS);
    }
    mock_->clear_log();
  }

  struct made {
    std::uint64_t stream, number, thread;
  };
  std::vector<made> launches() const {
    std::vector<made> found;
    for (const auto& one : mock_->log()) {
      if (one.name == "cuLaunchKernel") found.push_back({one.arguments[8], one.arguments[1], one.thread});
    }
    return found;
  }
};

TEST_F(side_launches, each_stream_has_its_launches_in_order_and_threads_share_them) {
  constexpr std::uint32_t threads = 4, each = 3000;
  start(threads);
  std::vector<std::thread> all;
  for (std::uint32_t n = 0; n < threads; ++n) {
    all.emplace_back([&, n] {
      for (std::uint32_t i = 1; i <= each; ++i) ASSERT_EQ(launch(10 + n, stream(n), i), CUDA_SUCCESS);
    });
  }
  for (auto& one : all) one.join();
  EXPECT_EQ(synchronize(1), CUDA_SUCCESS);
  std::map<std::uint64_t, std::uint64_t> last;
  std::map<std::uint64_t, int> by_thread;
  for (const made& one : launches()) {
    EXPECT_EQ(one.number, ++last[one.stream]);
    ++by_thread[one.thread];
  }
  EXPECT_EQ(last.size(), threads);
  for (const auto& [s, count] : last) EXPECT_EQ(count, each);
  EXPECT_GT(by_thread.size(), 1u);
}

/// Who reads for all leaves its own launches to itself, and the reading to the thread that stands by.
TEST_F(side_launches, a_lane_inside_the_driver_with_a_launch_keeps_nobody_from_reading) {
  constexpr std::uint32_t threads = 3;
  start(threads);
  mock_->block("cuLaunchKernel");
  ASSERT_EQ(launch(10 + threads - 1, stream(threads - 1), 1), CUDA_SUCCESS);  // its lane was the last to ask
  ASSERT_TRUE(mock_->wait_blocked("cuLaunchKernel", 1, 5s));
  for (std::uint32_t n = 0; n + 1 < threads; ++n) ASSERT_EQ(launch(10 + n, stream(n), 1), CUDA_SUCCESS);
  EXPECT_TRUE(mock_->wait_blocked("cuLaunchKernel", threads, 5s));
  mock_->release("cuLaunchKernel");
  EXPECT_EQ(synchronize(1), CUDA_SUCCESS);
  std::map<std::uint64_t, int> by_thread;
  for (const made& one : launches()) ++by_thread[one.thread];
  EXPECT_EQ(by_thread.size(), threads);
}

TEST_F(side_launches, what_a_joined_thread_launched_comes_before_what_the_joiner_does) {
  start(2);
  std::uint32_t number = 0;
  for (int round = 0; round < 40; ++round) {
    std::thread busy([&] {
      for (std::uint32_t i = 1; i <= 200; ++i) ASSERT_EQ(launch(11, stream(1), i), CUDA_SUCCESS);
    });
    std::thread([&] {
      for (int i = 0; i < 100; ++i) ASSERT_EQ(launch(10, stream(0), ++number), CUDA_SUCCESS);
    }).join();
    // The same stream from another thread: behind.
    ASSERT_EQ(launch(1, stream(0), ++number), CUDA_SUCCESS);
    busy.join();
  }
  EXPECT_EQ(synchronize(1), CUDA_SUCCESS);
  std::uint64_t last = 0;
  const auto all = launches();
  const std::uint64_t mine = std::ranges::find(all, std::uint64_t{number}, &made::number)->stream;
  for (const made& one : all) {
    if (one.number > 200) {
      EXPECT_EQ(one.stream, mine);
    }
  }
  for (const made& one : all) {
    if (one.stream == mine) {
      EXPECT_EQ(one.number, ++last);
    }
  }
  EXPECT_EQ(last, number);
}

TEST_F(side_launches, a_wait_comes_behind_all_launches_that_were_posted_before_it) {
  start(3);
  for (int round = 0; round < 30; ++round) {
    mock_->clear_log();
    std::vector<std::thread> all;
    for (std::uint32_t n = 0; n < 3; ++n) {
      all.emplace_back([&, n] {
        for (std::uint32_t i = 1; i <= 100; ++i) ASSERT_EQ(launch(10 + n, stream(n), i), CUDA_SUCCESS);
      });
    }
    for (auto& one : all) one.join();
    ASSERT_EQ(synchronize(1), CUDA_SUCCESS);
    EXPECT_EQ(launches().size(), 300u);  // all are over before the wait is answered
  }
}

TEST_F(side_launches, a_failed_launch_comes_back_to_its_own_lane) {
  start(2);
  std::thread other([&] {
    for (std::uint32_t i = 1; i <= 500; ++i) ASSERT_EQ(launch(11, stream(1), i), CUDA_SUCCESS);
  });
  for (std::uint32_t i = 1; i <= 500; ++i) ASSERT_EQ(launch(10, stream(0), i), CUDA_SUCCESS);
  other.join();
  ASSERT_EQ(synchronize(1), CUDA_SUCCESS);
  for (std::uint32_t i = 1; i <= 20; ++i) ASSERT_EQ(launch(11, stream(1), i), CUDA_SUCCESS);
  ASSERT_EQ(synchronize(11), CUDA_SUCCESS);
  mock_->fail("cuLaunchKernel", CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES, 1);
  ASSERT_EQ(launch(10, stream(0), 501), CUDA_SUCCESS);
  EXPECT_EQ(synchronize(11), CUDA_SUCCESS);
  EXPECT_EQ(synchronize(10), CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES);
  EXPECT_EQ(synchronize(10), CUDA_SUCCESS);
}

TEST_F(side_launches, a_session_ends_though_launches_are_left) {
  start(4);
  mock_->block("cuLaunchKernel");
  for (std::uint32_t n = 0; n < 4; ++n) {
    for (std::uint32_t i = 1; i <= 100; ++i) ASSERT_EQ(launch(10 + n, stream(n), i), CUDA_SUCCESS);
  }
  ASSERT_TRUE(mock_->wait_blocked("cuLaunchKernel", 1, 5s));
  session_->goodbye();
  mock_->release("cuLaunchKernel");
}

/// Posts in an order of the program's own (a lock), on streams of their own and of each other, with fills
/// between them, which are no launches: each has everything before it that was posted before.
TEST_F(side_launches, whatever_threads_do_each_stream_and_each_other_request_keeps_its_place) {
  constexpr std::uint32_t threads = 4, streams = 6, each = 1500;
  start(streams);
  std::vector<std::byte> reply;
  ASSERT_EQ(call(1, opcode::cuMemAlloc_v2, encoded(marshal::map_body{0, 1 << 20}), &reply), CUDA_SUCCESS);
  CUdeviceptr memory = 0;
  std::memcpy(&memory, reply.data(), sizeof memory);
  mock_->clear_log();
  std::mutex program;
  std::uint32_t number = 0;
  std::vector<std::uint64_t> stream_of{0};  // of the request with this number; 0: a fill
  const auto act = [&](std::uint32_t lane, std::mt19937& random) {
    const std::lock_guard lock(program);
    ++number;
    if (random() % 50 == 0) {
      stream_of.push_back(0);
      const auto fill = generated<opcode::cuMemsetD8Async>(0, memory, static_cast<unsigned char>(0),
                                                           static_cast<std::size_t>(number),
                                                           static_cast<CUstream>(nullptr));
      ASSERT_EQ(session_->post(request(lane, opcode::cuMemsetD8Async, fill)), CUDA_SUCCESS);
      return;
    }
    const std::uint64_t on = stream(random() % 8 ? lane - 10 : random() % streams);
    stream_of.push_back(on);
    ASSERT_EQ(launch(lane, on, number), CUDA_SUCCESS);
  };
  std::vector<std::thread> all;
  for (std::uint32_t n = 0; n < threads; ++n) {
    all.emplace_back([&, n] {
      std::mt19937 random(n + 1);
      for (std::uint32_t i = 0; i < each; ++i) {
        act(10 + n, random);
        if (random() % 64 == 0) std::this_thread::sleep_for(std::chrono::microseconds(random() % 300));
        if (random() % 400 == 0) {
          EXPECT_EQ(synchronize(10 + n), CUDA_SUCCESS);
        }
      }
    });
  }
  for (auto& one : all) one.join();
  EXPECT_EQ(synchronize(1), CUDA_SUCCESS);
  std::map<std::uint64_t, std::uint64_t> last;  // by stream: its latest number
  std::uint64_t done = 0, greatest = 0, launched_by = 0;
  std::map<std::uint64_t, int> by_thread;
  for (const auto& one : mock_->log()) {
    const bool launched = one.name == "cuLaunchKernel";
    if (!launched && one.name != "cuMemsetD8Async") continue;
    const std::uint64_t mine = one.arguments[launched ? 1 : 2];
    ++done;
    if (launched) {
      ++launched_by, ++by_thread[one.thread];
      EXPECT_LT(std::exchange(last[stream_of[mine]], mine), mine);
    } else {
      EXPECT_EQ(done, mine);          // as many before it as were posted before it ...
      EXPECT_EQ(greatest, mine - 1);  // ... and they are those
    }
    greatest = std::max(greatest, mine);
  }
  EXPECT_EQ(done, number);
  EXPECT_GT(by_thread.size(), 1u);
  EXPECT_GT(launched_by, threads * each / 2);
}

/// The same over connections whose reads and writes come in pieces.
class side_launches_in_pieces : public side_launches {
 protected:
  void wrap(std::unique_ptr<transport::connection>& one, std::uint64_t seed) override {
    transport::faults faults;
    faults.short_reads = faults.short_writes = true;
    faults.seed = seed;
    one = transport::make_faulty(std::move(one), faults);
  }
};

TEST_F(side_launches_in_pieces, lanes_launch_beside_each_other) {
  constexpr std::uint32_t threads = 3, each = 400;
  start(threads);
  std::vector<std::thread> all;
  for (std::uint32_t n = 0; n < threads; ++n) {
    all.emplace_back([&, n] {
      for (std::uint32_t i = 1; i <= each; ++i) {
        ASSERT_EQ(launch(10 + n, stream(n), i), CUDA_SUCCESS);
        if (i % 100 == 0) {
          ASSERT_EQ(synchronize(10 + n), CUDA_SUCCESS);
        }
      }
    });
  }
  for (auto& one : all) one.join();
  std::map<std::uint64_t, std::uint64_t> last;
  for (const made& one : launches()) EXPECT_EQ(one.number, ++last[one.stream]);
  EXPECT_EQ(last.size(), threads);
  for (const auto& [s, count] : last) EXPECT_EQ(count, each);
}

TEST_F(side_launches, a_malformed_launch_ends_the_session_though_it_was_put_aside) {
  start(2);
  std::thread other([&] {
    for (std::uint32_t i = 1; i <= 500; ++i) ASSERT_EQ(launch(11, stream(1), i), CUDA_SUCCESS);
  });
  for (std::uint32_t i = 1; i <= 500; ++i) ASSERT_EQ(launch(10, stream(0), i), CUDA_SUCCESS);
  other.join();
  marshal::launch_body body;
  body.kernel = function_handle;
  body.stream = stream(0);
  std::vector<std::byte> payload = encoded(body);
  payload.push_back(std::byte{0});
  (void)session_->post(request(10, opcode::cuLaunchKernel, payload));
  (void)launch(11, stream(1), 1);
  EXPECT_EQ(synchronize(1), CUDA_ERROR_DEVICE_UNAVAILABLE);
}

}  // namespace
}  // namespace outboard::tests
