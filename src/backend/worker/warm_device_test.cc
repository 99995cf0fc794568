#include "backend/worker/warm_device.hh"

#include <gtest/gtest.h>

#include <thread>

#include "device/mock/mock.hh"

namespace outboard::backend {
namespace {

/// Requests run on the threads of lanes; calls of the main thread are the worker's own.
template <class Call>
auto on_lane(Call call) {
  decltype(call()) answer{};
  std::thread([&] { answer = call(); }).join();
  return answer;
}

struct warm_device_test : testing::Test {
  warm_device_test() {
    auto opened = device::mock::open();
    CHECK(opened.ok());
    mock = std::move(*opened);
    mock->cuda().cuInit(0);
    auto made = make_warm_device(*mock, 0);
    CHECK(made.ok());
    warm = std::move(*made);
  }

  const api::driver_table& cuda() const { return warm->cuda(); }
  int active() {
    return on_lane([&] {
      unsigned flags = 0;
      int is = -1;
      EXPECT_EQ(cuda().cuDevicePrimaryCtxGetState(0, &flags, &is), CUDA_SUCCESS);
      return is;
    });
  }
  /// As the device itself sees it.
  int really_active() {
    unsigned flags = 0;
    int is = -1;
    mock->cuda().cuDevicePrimaryCtxGetState(0, &flags, &is);
    return is;
  }

  std::unique_ptr<device::mock::mock_device> mock;
  std::unique_ptr<device::device> warm;
};

TEST_F(warm_device_test, reports_the_waiting_context_as_inactive_until_the_program_retains_it) {
  EXPECT_EQ(really_active(), 1);
  EXPECT_EQ(active(), 0);
  CUcontext context = nullptr;
  EXPECT_EQ(on_lane([&] { return cuda().cuDevicePrimaryCtxRetain(&context, 0); }), CUDA_SUCCESS);
  EXPECT_NE(context, nullptr);
  EXPECT_EQ(active(), 1);
}

TEST_F(warm_device_test, gives_the_program_the_only_reference) {
  CUcontext context = nullptr;
  on_lane([&] { return cuda().cuDevicePrimaryCtxRetain(&context, 0); });
  EXPECT_EQ(on_lane([&] { return cuda().cuDevicePrimaryCtxRelease_v2(0); }), CUDA_SUCCESS);
  EXPECT_EQ(really_active(), 0);
}

TEST_F(warm_device_test, leaves_calls_of_the_worker_itself_alone) {
  CUcontext context = nullptr;
  EXPECT_EQ(cuda().cuDevicePrimaryCtxRetain(&context, 0), CUDA_SUCCESS);
  EXPECT_EQ(cuda().cuDevicePrimaryCtxRelease_v2(0), CUDA_SUCCESS);
  EXPECT_EQ(really_active(), 1) << "the snapshot must not use up the warm context";
  EXPECT_EQ(active(), 0);
}

TEST_F(warm_device_test, gives_the_context_up_for_other_flags) {
  EXPECT_EQ(on_lane([&] { return cuda().cuDevicePrimaryCtxSetFlags_v2(0, CU_CTX_SCHED_SPIN); }),
            CUDA_SUCCESS);
  EXPECT_EQ(really_active(), 0);
}

TEST_F(warm_device_test, keeps_the_context_for_the_same_flags) {
  EXPECT_EQ(on_lane([&] { return cuda().cuDevicePrimaryCtxSetFlags_v2(0, 0); }), CUDA_SUCCESS);
  EXPECT_EQ(really_active(), 1);
}

TEST_F(warm_device_test, gives_the_context_up_when_the_program_makes_its_own) {
  CUcontext context = nullptr;
  EXPECT_EQ(on_lane([&] { return cuda().cuCtxCreate_v2(&context, 0, 0); }), CUDA_SUCCESS);
  EXPECT_EQ(really_active(), 0);
}

TEST_F(warm_device_test, gives_the_context_up_at_the_end) {
  warm.reset();
  EXPECT_EQ(really_active(), 0);
}

}  // namespace
}  // namespace outboard::backend
