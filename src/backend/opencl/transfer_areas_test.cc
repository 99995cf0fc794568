#include "backend/opencl/transfer_areas.hh"

#include <gtest/gtest.h>

#include <cstring>

#include "backend/opencl/block_pool.hh"

namespace outboard::backend::opencl {
namespace {

int events = 0;              // references that are held
cl_int status = CL_RUNNING;  // of all events

cl_event some_event() {
  static int place;
  return reinterpret_cast<cl_event>(&place);
}

/// A platform that locks no memory, because its contexts have no device.
api::opencl::function_table plain_table() {
  api::opencl::function_table table;
  table.clGetContextInfo = [](cl_context, cl_context_info, std::size_t, void*, std::size_t*) -> cl_int {
    return CL_INVALID_CONTEXT;
  };
  table.clRetainEvent = [](cl_event) -> cl_int { return ++events, CL_SUCCESS; };
  table.clReleaseEvent = [](cl_event) -> cl_int { return --events, CL_SUCCESS; };
  table.clGetEventInfo = [](cl_event, cl_event_info, std::size_t size, void* to, std::size_t*) -> cl_int {
    if (size != sizeof status) return CL_INVALID_VALUE;
    std::memcpy(to, &status, sizeof status);
    return CL_SUCCESS;
  };
  return table;
}

const cl_context here = reinterpret_cast<cl_context>(&events);
const cl_context elsewhere = reinterpret_cast<cl_context>(&status);

TEST(transfer_areas, give_bytes_only_inside) {
  const auto table = plain_table();
  transfer_areas all(table);
  cl_int code = CL_SUCCESS;
  ASSERT_TRUE(all.open({7, 0, 1 << 20, 64 << 10}, here, code));
  EXPECT_FALSE(all.open({7, 0, 1 << 20, 0}, here, code)) << "the number is taken";
  EXPECT_EQ(code, CL_INVALID_VALUE);
  EXPECT_TRUE(bytes_in(all.find(7), 0, 1 << 20));
  EXPECT_TRUE(bytes_in(all.find(7), (1 << 20) - 1, 1));
  EXPECT_FALSE(bytes_in(all.find(7), 0, (1 << 20) + 1));
  EXPECT_FALSE(bytes_in(all.find(7), 1, 1 << 20));
  EXPECT_FALSE(bytes_in(all.find(7), ~std::uint64_t{0}, 2));
  EXPECT_FALSE(bytes_in(all.find(7), 2, ~std::uint64_t{0}));
  EXPECT_FALSE(bytes_in(all.find(8), 0, 1));
  EXPECT_FALSE(all.open({8, 0, std::uint64_t{1} << 60, 0}, here, code)) << "more than a machine has";
}

TEST(transfer_areas, live_as_long_as_a_command_needs_them) {
  const auto table = plain_table();
  transfer_areas all(table);
  cl_int code = CL_SUCCESS;
  ASSERT_TRUE(all.open({1, 0, 4096, 0}, here, code));
  ASSERT_TRUE(all.open({2, 0, 4096, 0}, elsewhere, code));
  const auto kept = bytes_in(all.find(1), 0, 4096);
  ASSERT_TRUE(kept);
  all.close_all_of(here);
  EXPECT_FALSE(all.find(1));
  EXPECT_TRUE(all.find(2));
  std::memset(kept->data, 1, kept->size);
  EXPECT_TRUE(all.close(2));
  EXPECT_FALSE(all.close(2));
}

TEST(transfer_areas, know_which_blocks_are_in_use) {
  const auto table = plain_table();
  transfer_areas all(table);
  cl_int code = CL_SUCCESS;
  ASSERT_TRUE(all.open({1, 0, 4 << 16, 1 << 16}, here, code));
  const auto area = all.find(1);
  events = 0, status = CL_RUNNING;
  area->used(0, some_event(), CL_SUCCESS);
  area->used(3 << 16, some_event(), CL_SUCCESS);
  area->used(4 << 16, some_event(), CL_SUCCESS);  // not one of its blocks
  area->used(1 << 16, nullptr, CL_OUT_OF_RESOURCES);
  EXPECT_EQ(events, 2);
  EXPECT_EQ(area->busy().busy, 0b1001u);
  EXPECT_EQ(area->last_use(1).code, CL_OUT_OF_RESOURCES);
  EXPECT_EQ(area->last_use(4).code, CL_INVALID_VALUE);
  status = CL_COMPLETE;
  EXPECT_EQ(area->busy().busy, 0u);
  EXPECT_EQ(events, 0);
}

TEST(block_pool, gives_blocks_back_to_its_context) {
  const auto table = plain_table();
  block_pool pool(table);
  for (int i = 0; i < 16; ++i) EXPECT_TRUE(pool.take(here, 100).data);
  std::byte* first = nullptr;
  {
    const host_bytes block = pool.take(here, 64 << 10);
    first = block.data;
    std::memset(block.data, 1, block.size);
    EXPECT_NE(pool.take(here, 1).data, first) << "it is in use";
  }
  EXPECT_EQ(pool.take(here, 1).data, first);
  std::vector<host_bytes> many;
  for (int i = 0; i < 20; ++i) many.push_back(pool.take(here, 64 << 10));
  for (const host_bytes& each : many) std::memset(each.data, 1, each.size);  // also those beyond its blocks
  pool.forget(here);
  for (const host_bytes& each : many) std::memset(each.data, 2, each.size);
  EXPECT_TRUE(pool.take(nullptr, 3 << 20).data) << "without a context, and more than a block";
}

}  // namespace
}  // namespace outboard::backend::opencl
