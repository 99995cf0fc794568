// Waits for which the worker first polls events of its own: when it does, when it does not, and that a long
// wait does not block other lanes.
#include "loopback_session.hh"

namespace outboard::tests {
namespace {

class short_waits : public loopback_session {
 protected:
  CUresult fill(std::uint32_t lane, CUstream stream = nullptr) {
    if (!memory_) {
      std::vector<std::byte> reply;
      if (call(1, opcode::cuMemAlloc_v2, encoded(marshal::map_body{0, 4096}), &reply) != CUDA_SUCCESS)
        return CUDA_ERROR_OUT_OF_MEMORY;
      std::memcpy(&memory_, reply.data(), sizeof memory_);
    }
    const auto payload = generated<opcode::cuMemsetD8Async>(0, memory_, static_cast<unsigned char>(0),
                                                            static_cast<std::size_t>(1), stream);
    return session_->post(request(lane, opcode::cuMemsetD8Async, payload));
  }
  CUresult synchronize_stream(std::uint32_t lane) {
    return call(lane, opcode::cuStreamSynchronize,
                generated<opcode::cuStreamSynchronize>(0, static_cast<CUstream>(nullptr)));
  }
  CUdeviceptr memory_ = 0;

  CUresult end_capture() {
    return call(1, opcode::cuStreamEndCapture, encoded(marshal::capture_body{0, 0, 1, false}));
  }
};

TEST_F(short_waits, a_context_whose_work_is_known_is_polled_before_the_wait) {
  start_client();
  ASSERT_EQ(synchronize(1), CUDA_SUCCESS);
  EXPECT_EQ(mock_->calls("cuEventRecord"), 0u);
  ASSERT_EQ(fill(1), CUDA_SUCCESS);
  ASSERT_EQ(synchronize(1), CUDA_SUCCESS);
  EXPECT_EQ(mock_->calls("cuEventRecord"), 1u);
  EXPECT_EQ(mock_->calls("cuEventQuery"), 1u);
  EXPECT_EQ(mock_->calls("cuCtxSynchronize"),
            1u);  // only the first: nothing was known then, and now no kernel prints
}

TEST_F(short_waits, a_context_with_unknown_work_is_waited_for_at_once) {
  start_client();
  ASSERT_EQ(fill(1), CUDA_SUCCESS);
  ASSERT_EQ(call(1, opcode::cuMemcpyDtoD_v2,
                 generated<opcode::cuMemcpyDtoD_v2>(0, memory_, memory_ + 8, std::size_t{4})),
            CUDA_SUCCESS);
  ASSERT_EQ(synchronize(1), CUDA_SUCCESS);
  EXPECT_EQ(mock_->calls("cuEventQuery"), 0u);
}

/// The driver delivers what kernels print when the worker waits with the driver's own functions.
TEST_F(short_waits, kernels_that_may_print_are_waited_for_by_the_driver) {
  start_client();
  load(
      ".extern .func (.param .b32 r) vprintf (.param .b64 f, .param .b64 a);\n.visible .entry k() { ret; "
      "}\n");
  ASSERT_EQ(synchronize(1), CUDA_SUCCESS);
  ASSERT_EQ(launch(1, 0, 1), CUDA_SUCCESS);
  const std::uint64_t before = mock_->calls("cuCtxSynchronize"),
                      streams = mock_->calls("cuStreamSynchronize");
  // The end of one stream's work says nothing about other streams.
  ASSERT_EQ(synchronize_stream(1), CUDA_SUCCESS);
  ASSERT_EQ(synchronize_stream(1), CUDA_SUCCESS);
  EXPECT_EQ(mock_->calls("cuStreamSynchronize"), streams + 2);
  ASSERT_EQ(synchronize(1), CUDA_SUCCESS);
  EXPECT_EQ(mock_->calls("cuCtxSynchronize"), before + 1);
  ASSERT_EQ(fill(1), CUDA_SUCCESS);
  ASSERT_EQ(synchronize(1), CUDA_SUCCESS);
  ASSERT_EQ(synchronize_stream(1), CUDA_SUCCESS);
  EXPECT_EQ(mock_->calls("cuCtxSynchronize"), before + 1);
  EXPECT_EQ(mock_->calls("cuStreamSynchronize"), streams + 2);
  ASSERT_EQ(launch(1, 0, 1), CUDA_SUCCESS);
  ASSERT_EQ(synchronize(1), CUDA_SUCCESS);
  EXPECT_EQ(mock_->calls("cuCtxSynchronize"), before + 2);
}

TEST_F(short_waits, a_long_wait_blocks_no_other_lane) {
  start_client();
  ASSERT_EQ(synchronize(1), CUDA_SUCCESS);
  ASSERT_EQ(fill(2), CUDA_SUCCESS);
  mock_->fail("cuEventQuery", CUDA_ERROR_NOT_READY);
  mock_->block("cuCtxSynchronize");
  std::thread waiting([&] { EXPECT_EQ(synchronize(2), CUDA_SUCCESS); });
  ASSERT_TRUE(mock_->wait_blocked("cuCtxSynchronize", 1, 5s));
  for (std::uint32_t i = 0; i < 100; ++i) ASSERT_EQ(create_event(1, i), CUDA_SUCCESS);
  EXPECT_EQ(call(1, opcode::cuMemGetInfo_v2, {}), CUDA_SUCCESS);
  mock_->release("cuCtxSynchronize");
  waiting.join();
}

TEST_F(short_waits, a_stream_is_polled_by_an_event_or_by_itself_during_a_capture) {
  start_client();
  ASSERT_EQ(synchronize_stream(1), CUDA_SUCCESS);
  EXPECT_EQ(mock_->calls("cuEventRecord"), 1u);
  EXPECT_EQ(mock_->calls("cuStreamQuery"), 0u);
  ASSERT_EQ(call(1, opcode::cuStreamBeginCapture_v2, encoded(marshal::capture_body{0, 0, 0, false})),
            CUDA_SUCCESS);
  ASSERT_EQ(synchronize_stream(1), CUDA_SUCCESS);
  EXPECT_EQ(mock_->calls("cuEventRecord"), 1u);  // the capture would contain another one
  EXPECT_EQ(mock_->calls("cuStreamQuery"), 1u);
  (void)end_capture();
  ASSERT_EQ(synchronize_stream(1), CUDA_SUCCESS);
  EXPECT_EQ(mock_->calls("cuEventRecord"), 2u);
}

TEST_F(short_waits, a_failed_record_of_our_own_is_not_reported) {
  start_client();
  mock_->fail("cuEventRecord", CUDA_ERROR_INVALID_HANDLE);
  EXPECT_EQ(synchronize_stream(1), CUDA_SUCCESS);
  EXPECT_EQ(mock_->calls("cuStreamQuery"), 1u);
  ASSERT_EQ(fill(1), CUDA_SUCCESS);
  EXPECT_EQ(synchronize(1), CUDA_SUCCESS);
}

TEST_F(short_waits, a_wait_returns_what_the_device_says_about_a_fault) {
  start_client();
  ASSERT_EQ(synchronize(1), CUDA_SUCCESS);
  ASSERT_EQ(fill(1), CUDA_SUCCESS);
  mock_->fail("cuEventQuery", CUDA_ERROR_ILLEGAL_ADDRESS);
  mock_->fail("cuStreamQuery", CUDA_ERROR_ILLEGAL_ADDRESS);
  mock_->fail("cuCtxSynchronize", CUDA_ERROR_ILLEGAL_ADDRESS);
  EXPECT_EQ(synchronize_stream(1), CUDA_ERROR_ILLEGAL_ADDRESS);
  EXPECT_EQ(synchronize(1), CUDA_ERROR_ILLEGAL_ADDRESS);
  EXPECT_EQ(sticky_.load(), CUDA_ERROR_ILLEGAL_ADDRESS);
}

}  // namespace
}  // namespace outboard::tests
