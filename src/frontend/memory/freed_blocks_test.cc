#include "frontend/memory/freed_blocks.hh"

#include <gtest/gtest.h>

namespace outboard::frontend {
namespace {

freed_block freed(std::uint64_t base, std::uint64_t size, std::uint64_t stream, std::uint64_t pool = 7) {
  freed_block made;
  made.block.base = base;
  made.block.size = size;
  made.block.kind = memory_kind::pool;
  made.block.context = 3;
  made.block.pool = pool;
  made.stream = stream;
  return made;
}

std::uint64_t base_of(const std::optional<memory_block>& block) { return block ? block->base : 0; }

TEST(freed_blocks, gives_back_what_fits_and_the_youngest_first) {
  freed_blocks blocks;
  EXPECT_FALSE(blocks.any());
  ASSERT_TRUE(blocks.keep(freed(0x1000, 64, 5)));
  ASSERT_TRUE(blocks.keep(freed(0x2000, 64, 5)));
  EXPECT_TRUE(blocks.any());
  EXPECT_EQ(base_of(blocks.take(freed(0, 64, 5))), 0x2000u);
  EXPECT_EQ(base_of(blocks.take(freed(0, 64, 5))), 0x1000u);
  EXPECT_FALSE(blocks.take(freed(0, 64, 5)));
  EXPECT_FALSE(blocks.any());
}

TEST(freed_blocks, another_size_stream_pool_context_or_device_is_another_block) {
  freed_blocks blocks;
  ASSERT_TRUE(blocks.keep(freed(0x1000, 64, 5)));
  EXPECT_FALSE(blocks.take(freed(0, 63, 5)));
  EXPECT_FALSE(blocks.take(freed(0, 64, 6)));
  EXPECT_FALSE(blocks.take(freed(0, 64, 5, 8)));
  freed_block elsewhere = freed(0, 64, 5);
  elsewhere.block.context = 4;
  EXPECT_FALSE(blocks.take(elsewhere));
  elsewhere = freed(0, 64, 5);
  elsewhere.block.device = 1;
  EXPECT_FALSE(blocks.take(elsewhere));
  EXPECT_EQ(base_of(blocks.take(freed(0, 64, 5))), 0x1000u);
}

TEST(freed_blocks, keeps_no_more_than_so_many) {
  freed_blocks blocks;
  for (std::size_t i = 1; i <= freed_blocks::most; ++i) ASSERT_TRUE(blocks.keep(freed(i << 12, 64, 5)));
  EXPECT_FALSE(blocks.keep(freed(1, 64, 5)));
  EXPECT_TRUE(blocks.take(freed(0, 64, 5)));
  EXPECT_TRUE(blocks.keep(freed(1, 64, 5)));
}

TEST(freed_blocks, only_work_on_a_stream_goes_before_them) {
  EXPECT_TRUE(api::about(api::opcode::cuLaunchKernel).overtakes);
  EXPECT_TRUE(api::about(api::opcode::cuMemcpyHtoD_v2).overtakes);
  for (const auto code :
       {api::opcode::cuEventRecord, api::opcode::cuStreamWaitEvent, api::opcode::cuGraphLaunch,
        api::opcode::cuStreamDestroy_v2, api::opcode::cuMemFreeAsync, api::opcode::cuLaunchHostFunc})
    EXPECT_FALSE(api::about(code).overtakes) << static_cast<unsigned>(code);
}

}  // namespace
}  // namespace outboard::frontend
