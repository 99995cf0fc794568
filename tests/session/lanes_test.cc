// Both ends of a session in one process over loopback, with the mock device: order across threads, waits that
// do not block other threads, errors of posts, peers that violate the protocol. Also meant for TSan.
#include "loopback_session.hh"

namespace outboard::tests {
namespace {

class lanes : public loopback_session {};

TEST_F(lanes, what_a_joined_thread_posted_is_executed_before_what_the_joiner_asks) {
  start_client();
  constexpr std::uint32_t posts = 4000;
  std::thread poster([&] {
    for (std::uint32_t i = 0; i < posts; ++i) ASSERT_EQ(create_event(2, i), CUDA_SUCCESS);
  });
  poster.join();
  EXPECT_EQ(synchronize(1), CUDA_SUCCESS);
  EXPECT_EQ(mock_->calls("cuEventCreate"), posts);
}

/// The worker naps by the end of a round (reading_pace.hh).
TEST_F(lanes, a_program_that_posts_for_long_is_answered_and_loses_nothing) {
  start_client();
  std::uint32_t posted = 0;
  for (int round = 0; round < 3; ++round) {
    const auto until = std::chrono::steady_clock::now() + 15ms;
    while (std::chrono::steady_clock::now() < until) {
      ASSERT_EQ(create_event(1, posted++), CUDA_SUCCESS);
      if (posted % 8 == 0) std::this_thread::sleep_for(20us);
    }
    EXPECT_EQ(synchronize(1), CUDA_SUCCESS);
    EXPECT_EQ(mock_->calls("cuEventCreate"), posted);
  }
  std::this_thread::sleep_for(5ms);
  EXPECT_EQ(synchronize(2), CUDA_SUCCESS);
}

TEST_F(lanes, two_threads_that_hand_over_keep_their_order) {
  start_client();
  for (std::uint32_t i = 0; i < 250; ++i) {
    std::thread([&] { ASSERT_EQ(create_event(2, i), CUDA_SUCCESS); }).join();
    const auto payload = generated<opcode::cuEventRecord>(0, reinterpret_cast<CUevent>(event(i)),
                                                          static_cast<CUstream>(nullptr));
    ASSERT_EQ(call(3, opcode::cuEventRecord, payload), CUDA_SUCCESS) << i;
  }
}

TEST_F(lanes, a_blocked_wait_blocks_no_other_lane) {
  start_client();
  ASSERT_EQ(synchronize(1), CUDA_SUCCESS);
  mock_->block("cuCtxSynchronize");
  std::thread waiting([&] { EXPECT_EQ(synchronize(2), CUDA_SUCCESS); });
  ASSERT_TRUE(mock_->wait_blocked("cuCtxSynchronize", 1, 5s));
  for (std::uint32_t i = 0; i < 100; ++i) ASSERT_EQ(create_event(1, i), CUDA_SUCCESS);
  std::vector<std::byte> reply;
  EXPECT_EQ(call(1, opcode::cuMemGetInfo_v2, {}, &reply), CUDA_SUCCESS);
  EXPECT_EQ(reply.size(), 16u);
  mock_->release("cuCtxSynchronize");
  waiting.join();
  EXPECT_EQ(synchronize(2), CUDA_SUCCESS);
}

TEST_F(lanes, a_failed_post_comes_back_with_the_next_synchronisation_of_its_lane_once) {
  start_client();
  ASSERT_EQ(create_event(1, 0), CUDA_SUCCESS);
  mock_->fail("cuEventRecord", CUDA_ERROR_INVALID_VALUE, 1);
  const auto payload = generated<opcode::cuEventRecord>(0, reinterpret_cast<CUevent>(event(0)),
                                                        static_cast<CUstream>(nullptr));
  ASSERT_EQ(session_->post(request(1, opcode::cuEventRecord, payload)), CUDA_SUCCESS);
  EXPECT_EQ(synchronize(2), CUDA_SUCCESS);
  EXPECT_EQ(synchronize(1), CUDA_ERROR_INVALID_VALUE);
  EXPECT_EQ(synchronize(1), CUDA_SUCCESS);
}

TEST_F(lanes, a_failed_creation_leaves_a_tombstone_with_its_code) {
  start_client();
  mock_->fail("cuEventCreate", CUDA_ERROR_OUT_OF_MEMORY, 1);
  ASSERT_EQ(create_event(1, 0), CUDA_SUCCESS);
  const auto payload = generated<opcode::cuEventRecord>(0, reinterpret_cast<CUevent>(event(0)),
                                                        static_cast<CUstream>(nullptr));
  EXPECT_EQ(call(1, opcode::cuEventRecord, payload), CUDA_ERROR_OUT_OF_MEMORY);
  ASSERT_EQ(create_event(1, 1), CUDA_SUCCESS);
  EXPECT_EQ(synchronize(1), CUDA_ERROR_OUT_OF_MEMORY);
  EXPECT_EQ(synchronize(1), CUDA_SUCCESS);
}

TEST_F(lanes, a_sticky_error_is_reported_at_once) {
  start_client();
  mock_->fail("cuCtxSynchronize", CUDA_ERROR_ILLEGAL_ADDRESS, 1);
  EXPECT_EQ(synchronize(1), CUDA_ERROR_ILLEGAL_ADDRESS);
  EXPECT_EQ(sticky_.load(), CUDA_ERROR_ILLEGAL_ADDRESS);
}

TEST_F(lanes, upload_and_download_in_two_threads_at_once_finish) {
  start_client();
  CUdeviceptr address = 0,
              other = 0;  // two blocks, because the mock's memory is real and nothing orders the threads
  std::vector<std::byte> reply;
  constexpr std::size_t size = 32u << 20;
  for (CUdeviceptr* block : {&address, &other}) {
    ASSERT_EQ(call(1, opcode::cuMemAlloc_v2, encoded(marshal::map_body{0, size}), &reply), CUDA_SUCCESS);
    std::memcpy(block, reply.data(), sizeof *block);
  }
  const std::vector<std::byte> source(8u << 20, std::byte{0x5a});
  std::vector<std::byte> target(size);
  std::thread upload([&] {
    for (int i = 0; i < 4; ++i) {
      const auto payload =
          encoded(marshal::copy_in_body{address + i * source.size(), 0, marshal::flavour::sync});
      frontend::outgoing out = request(2, opcode::cuMemcpyHtoD_v2, payload);
      out.bulk = source;
      ASSERT_EQ(session_->post(out), CUDA_SUCCESS);
    }
    EXPECT_EQ(synchronize(2), CUDA_SUCCESS);
  });
  std::thread download([&] {
    const auto payload = encoded(marshal::copy_out_body{other, size, 0, marshal::flavour::sync});
    const frontend::landing land{target.data(), size};
    std::vector<std::byte> own_reply;
    EXPECT_EQ(session_->call(request(3, opcode::cuMemcpyDtoH_v2, payload), own_reply, &land), CUDA_SUCCESS);
  });
  upload.join();
  download.join();
  const auto payload = encoded(marshal::copy_out_body{address, size, 0, marshal::flavour::sync});
  const frontend::landing land{target.data(), size};
  ASSERT_EQ(session_->call(request(1, opcode::cuMemcpyDtoH_v2, payload), reply, &land), CUDA_SUCCESS);
  EXPECT_TRUE(std::all_of(target.begin(), target.end(), [](std::byte b) { return b == std::byte{0x5a}; }));
}

TEST_F(lanes, a_thousand_threads_come_and_go) {
  start_client();
  std::atomic<int> right{0};
  for (int wave = 0; wave < 10; ++wave) {
    std::vector<std::thread> threads;
    for (int i = 0; i < 100; ++i) {
      threads.emplace_back([&, lane = static_cast<std::uint32_t>(10 + wave * 100 + i)] {
        right += synchronize(lane) == CUDA_SUCCESS;
        session_->end_lane(lane);
      });
    }
    for (auto& t : threads) t.join();
  }
  EXPECT_EQ(right.load(), 1000);
}

TEST_F(lanes, an_unknown_function_is_not_supported_and_the_session_lives) {
  start_client();
  EXPECT_EQ(call(1, static_cast<opcode>(999'999), {}), CUDA_ERROR_NOT_SUPPORTED);
  EXPECT_EQ(synchronize(1), CUDA_SUCCESS);
}

TEST_F(lanes, a_dead_handle_is_refused_and_the_session_lives) {
  start_client();
  const auto payload = generated<opcode::cuEventRecord>(0, reinterpret_cast<CUevent>(event(5)),
                                                        static_cast<CUstream>(nullptr));
  EXPECT_EQ(call(1, opcode::cuEventRecord, payload), CUDA_ERROR_INVALID_HANDLE);
  EXPECT_EQ(synchronize(1), CUDA_SUCCESS);
}

TEST_F(lanes, a_malformed_request_ends_the_session_for_every_waiter) {
  start_client();
  std::vector<std::byte> garbage(3, std::byte{0xff});
  EXPECT_EQ(call(1, opcode::cuMemAlloc_v2, garbage), CUDA_ERROR_DEVICE_UNAVAILABLE);
  EXPECT_TRUE(session_->lost());
}

TEST_F(lanes, a_vanished_client_ends_the_session_though_a_lane_waits) {
  start_client();
  mock_->block("cuCtxSynchronize");
  std::thread waiting([&] { EXPECT_EQ(synchronize(2), CUDA_ERROR_DEVICE_UNAVAILABLE); });
  ASSERT_TRUE(mock_->wait_blocked("cuCtxSynchronize", 1, 5s));
  session_->goodbye();
  waiting.join();
  mock_->release("cuCtxSynchronize");
}

}  // namespace
}  // namespace outboard::tests
