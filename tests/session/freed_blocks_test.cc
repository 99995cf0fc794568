// Frees that were kept back reach the device in their order, before what their sender sends next.
#include "frontend/memory/freed_blocks.hh"

#include "loopback_session.hh"

namespace outboard::tests {
namespace {

class freed : public loopback_session {
 protected:
  CUdeviceptr allocate() {
    std::vector<std::byte> reply;
    const auto asked = encoded(marshal::pool_body{4096, 0, 0, 0, false});
    EXPECT_EQ(call(1, opcode::cuMemAllocAsync, asked, &reply), CUDA_SUCCESS);
    wire::reader from(reply);
    return marshal::take_body<marshal::address_reply>(from).address;
  }

  frontend::freed_block block(CUdeviceptr address, std::uint64_t size = 4096) {
    frontend::freed_block made;
    made.block.base = address;
    made.block.size = size;
    made.running_context = context_handle;
    return made;
  }

  frontend::freed_blocks blocks_;
};

TEST_F(freed, what_is_kept_is_freed_once_it_is_sent_and_what_was_taken_is_not) {
  start_client();
  for (int i = 0; i < 3; ++i) ASSERT_TRUE(blocks_.keep(block(allocate())));
  EXPECT_TRUE(blocks_.take(block(0)));
  ASSERT_EQ(synchronize(1), CUDA_SUCCESS);
  EXPECT_EQ(mock_->calls("cuMemFreeAsync"), 0u);
  blocks_.send(*session_, 1);
  ASSERT_EQ(synchronize(1), CUDA_SUCCESS);
  EXPECT_EQ(mock_->calls("cuMemFreeAsync"), 2u);
  blocks_.send(*session_, 1);
  ASSERT_EQ(synchronize(1), CUDA_SUCCESS);
  EXPECT_EQ(mock_->calls("cuMemFreeAsync"), 2u);
}

TEST_F(freed, an_allocation_that_finds_nothing_spares_so_many_bytes_or_none) {
  start_client();
  for (int i = 0; i < 3; ++i) ASSERT_TRUE(blocks_.keep(block(allocate(), 20u << 20)));
  blocks_.make_room(*session_, 1);
  ASSERT_EQ(synchronize(1), CUDA_SUCCESS);
  EXPECT_EQ(mock_->calls("cuMemFreeAsync"), 2u);
  blocks_.make_room(*session_, 1);
  EXPECT_TRUE(blocks_.any());
  blocks_.be_exact();
  blocks_.make_room(*session_, 1);
  EXPECT_FALSE(blocks_.any());
  ASSERT_EQ(synchronize(1), CUDA_SUCCESS);
  EXPECT_EQ(mock_->calls("cuMemFreeAsync"), 3u);
}

TEST_F(freed, whoever_finds_nothing_left_finds_it_sent) {
  start_client();
  for (int round = 1; round <= 50; ++round) {
    ASSERT_TRUE(blocks_.keep(block(allocate())));
    const auto ask = [&](std::uint32_t lane) {
      if (blocks_.any()) blocks_.send(*session_, lane);
      EXPECT_EQ(synchronize(lane), CUDA_SUCCESS);
      EXPECT_EQ(mock_->calls("cuMemFreeAsync"), static_cast<unsigned>(round));
    };
    std::thread other([&] { ask(2); });
    ask(1);
    other.join();
  }
}

}  // namespace
}  // namespace outboard::tests
