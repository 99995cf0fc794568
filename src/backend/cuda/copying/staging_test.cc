#include "backend/cuda/copying/staging.hh"

#include <gtest/gtest.h>

#include <thread>

#include "device/mock/mock.hh"

namespace outboard::backend {
namespace {

using namespace std::chrono_literals;

class StagingTest : public testing::Test {
 protected:
  StagingTest() : device_(std::move(*device::mock::open())), table_(device_->cuda()) { table_.cuInit(0); }
  std::unique_ptr<device::mock::mock_device> device_;
  const api::driver_table& table_;
  staging stage_{table_};
};

TEST_F(StagingTest, BlocksAreUsedAgain) {
  const staging::block first = stage_.take(1000, 1);
  ASSERT_NE(first.data, nullptr);
  EXPECT_GE(first.size, 1000u);
  stage_.give_back(first);
  EXPECT_EQ(stage_.take(60'000, 1).data, first.data);
  EXPECT_NE(stage_.take(60'000, 1).data, first.data);
  EXPECT_EQ(stage_.bytes(), 2 * first.size);
}

/// Its memory stays readable for whoever has it, and is not used again.
TEST_F(StagingTest, BlocksOfADeadContextAreNotUsedAgain) {
  const staging::block kept = stage_.take(1000, 1), used = stage_.take(1000, 1), other = stage_.take(1000, 2);
  stage_.give_back(kept);
  stage_.give_back(other);
  stage_.drop_context(1);
  used.data[0] = std::byte{1};
  const staging::block fresh = stage_.take(1000, 1);
  EXPECT_EQ(fresh.done, nullptr);
  EXPECT_NE(fresh.data, used.data);
  stage_.give_back(used);
  EXPECT_EQ(stage_.take(1000, 2).data, other.data);
  EXPECT_EQ(stage_.bytes(), fresh.size + other.size);
}

/// Bytes of a copy that others give back may be what the device waits for.
TEST_F(StagingTest, WhoWaitsForRoomKeepsNobodyFromGivingBack) {
  const staging::block other = stage_.take(1000, 1);
  for (std::size_t held = 0; held < 256u << 20; held += staging::largest) {
    stage_.give_back_after(stage_.take(staging::largest, 1), nullptr, false);
    device_->fail("cuEventQuery", CUDA_ERROR_NOT_READY);
  }
  device_->block("cuEventSynchronize");
  std::thread waiting([&] { EXPECT_NE(stage_.take(staging::largest, 1).data, nullptr); });
  ASSERT_TRUE(device_->wait_blocked("cuEventSynchronize", 1, 5s));
  stage_.give_back(other);
  EXPECT_EQ(stage_.take(1000, 1).data, other.data);
  device_->release("cuEventSynchronize");
  waiting.join();
}

TEST_F(StagingTest, PreparedBlocksAreLockedTogetherAndOnce) {
  stage_.prepare(1 << 20, 4, 1);
  EXPECT_EQ(stage_.bytes(), 4u << 20);
  stage_.prepare(1 << 20, 4, 1);
  EXPECT_EQ(stage_.bytes(), 4u << 20);
  EXPECT_EQ(device_->calls("cuMemHostRegister_v2"), 1u);
  for (int i = 0; i < 4; ++i) {
    const staging::block b = stage_.take(1 << 20, 1);
    ASSERT_NE(b.data, nullptr);
    EXPECT_TRUE(b.pinned);
    std::fill_n(b.data, b.size, std::byte{1});
  }
  EXPECT_EQ(device_->calls("cuMemHostRegister_v2"), 1u);
  (void)stage_.take(1 << 20, 1);
  EXPECT_EQ(device_->calls("cuMemHostRegister_v2"), 2u);
  stage_.drop_context(1);
  stage_.prepare(1 << 20, 4, 1);
  EXPECT_EQ(device_->calls("cuMemHostRegister_v2"), 3u) << "the context has begun a new life";
}

/// The driver knows it by its beginning alone.
TEST_F(StagingTest, OneOfASlabIsNotLetGoAlone) {
  stage_.prepare(1 << 20, 4, 1);
  stage_.give_back(stage_.take(16u << 20, 1));
  for (int i = 0; i < 16; ++i) ASSERT_NE(stage_.take(16u << 20, 2).data, nullptr);
  EXPECT_LE(device_->calls("cuMemHostUnregister"), 1u);
  for (int i = 0; i < 4; ++i) EXPECT_TRUE(stage_.take(1 << 20, 1).of_slab);
}

TEST_F(StagingTest, WhoMakesABlockKeepsNobodyFromGivingBack) {
  const staging::block other = stage_.take(1000, 1);
  device_->block("cuMemHostRegister_v2");
  std::thread making([&] { EXPECT_NE(stage_.take(1 << 20, 1).data, nullptr); });
  ASSERT_TRUE(device_->wait_blocked("cuMemHostRegister_v2", 1, 5s));
  stage_.give_back(other);
  EXPECT_EQ(stage_.take(1000, 1).data, other.data);
  device_->release("cuMemHostRegister_v2");
  making.join();
}

}  // namespace
}  // namespace outboard::backend
