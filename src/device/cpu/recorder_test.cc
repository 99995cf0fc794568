#include "device/cpu/recorder.hh"

#include <vector>

#include "device/cpu/fixture.hh"

namespace outboard::device::cpu {
namespace {

using api::memory_side;
using api::work_kind;
using api::work_record;

class recorder_test : public device_test {
 protected:
  work_recorder& own() { return *device_->recorder(); }
  void run(CUfunction f, CUdeviceptr at, CUstream s = nullptr) {
    void* parameters[] = {&at};
    ASSERT_EQ(table_.cuLaunchKernel(f, 2, 1, 1, 32, 1, 1, 0, s, parameters, nullptr), CUDA_SUCCESS);
  }
  void settle() { ASSERT_EQ(table_.cuCtxSynchronize(), CUDA_SUCCESS); }
};

TEST_F(recorder_test, nothing_is_kept_before_it_starts) {
  const CUfunction f = function(load(), "increment");
  const CUdeviceptr at = allocate(4);
  run(f, at);
  settle();
  EXPECT_TRUE(own().take(true).records.empty());
  ASSERT_TRUE(own().start().ok());
  run(f, at);
  settle();
  const recorded_work done = own().take(true);
  ASSERT_EQ(done.records.size(), 1u);
  EXPECT_EQ(done.names, std::vector<std::string>{"increment"});
  EXPECT_EQ(done.records[0].name, 0u);
  EXPECT_EQ(done.records[0].grid[0], 2u);
  EXPECT_EQ(done.records[0].block[0], 32u);
  EXPECT_FALSE(done.more);
  EXPECT_TRUE(own().take(true).records.empty());
}

TEST_F(recorder_test, work_names_the_request_that_left_it) {
  ASSERT_TRUE(own().start().ok());
  const CUfunction f = function(load(), "increment");
  const CUdeviceptr at = allocate(4);
  CUstream side = nullptr;
  ASSERT_EQ(table_.cuStreamCreate(&side, CU_STREAM_NON_BLOCKING), CUDA_SUCCESS);
  request_under_way = 71;
  run(f, at, side);
  request_under_way = 72;
  ASSERT_EQ(table_.cuMemsetD8Async(at, 1, 4, side), CUDA_SUCCESS);
  request_under_way = 73;
  settle();  // on this thread, as far as others have not done it
  EXPECT_EQ(request_under_way, 73u);
  const std::vector<work_record> done = own().take(true).records;
  ASSERT_EQ(done.size(), 2u);
  EXPECT_EQ(done[0].request, 71u);
  EXPECT_EQ(done[1].request, 72u);
  request_under_way = 0;
}

TEST_F(recorder_test, copies_and_fills_say_what_they_moved_and_in_order) {
  ASSERT_TRUE(own().start().ok());
  const std::uint64_t before = own().now();
  const CUdeviceptr at = allocate(4096);
  std::vector<std::byte> here(4096);
  ASSERT_EQ(table_.cuMemsetD8_v2(at, 1, 4096), CUDA_SUCCESS);
  ASSERT_EQ(table_.cuMemcpyDtoH_v2(here.data(), at, 4096), CUDA_SUCCESS);
  const std::vector<work_record> done = own().take(true).records;
  ASSERT_EQ(done.size(), 2u);
  EXPECT_EQ(done[0].kind, work_kind::fill);
  EXPECT_EQ(done[0].bytes, 4096u);
  EXPECT_EQ(done[1].kind, work_kind::copy);
  EXPECT_EQ(done[1].from, memory_side::device);
  EXPECT_EQ(done[1].to, memory_side::pageable);
  EXPECT_LE(before, done[0].begin);
  EXPECT_LE(done[0].end, done[1].begin);
  EXPECT_LE(done[1].end, own().now());
}

TEST_F(recorder_test, streams_are_told_apart_and_names_come_once) {
  ASSERT_TRUE(own().start().ok());
  CUstream streams[2] = {};
  for (CUstream& s : streams) ASSERT_EQ(table_.cuStreamCreate(&s, CU_STREAM_NON_BLOCKING), CUDA_SUCCESS);
  const CUfunction f = function(load(), "increment");
  const CUdeviceptr at = allocate(4);
  run(f, at, streams[0]);
  settle();
  run(f, at, streams[1]);
  settle();
  const recorded_work done = own().take(true);
  ASSERT_EQ(done.records.size(), 2u);
  EXPECT_NE(done.records[0].stream, done.records[1].stream);
  EXPECT_EQ(done.records[0].name, done.records[1].name);
  EXPECT_EQ(done.names.size(), 1u);
  run(f, at, streams[0]);
  settle();
  const recorded_work later = own().take(true);
  ASSERT_EQ(later.records.size(), 1u);
  EXPECT_EQ(later.records[0].stream, done.records[0].stream);
  EXPECT_TRUE(later.names.empty());
}

}  // namespace
}  // namespace outboard::device::cpu
