#include "frontend/cupti/record_buffers.hh"

#include <gtest/gtest.h>

#include <cstdlib>
#include <cstring>
#include <vector>

namespace outboard::frontend::cupti {
namespace {

struct given {
  std::size_t size = 1024, most = 0;
  bool none = false;
  std::vector<std::vector<std::uint8_t>> back;
} program;

void give(std::uint8_t** buffer, std::size_t* size, std::size_t* most) {
  *buffer = program.none ? nullptr : static_cast<std::uint8_t*>(std::aligned_alloc(8, program.size));
  *size = program.size;
  *most = program.most;
}

void take(CUcontext, std::uint32_t, std::uint8_t* buffer, std::size_t size, std::size_t valid) {
  EXPECT_EQ(size, program.size);
  program.back.emplace_back(buffer, buffer + valid);
  std::free(buffer);
}

class record_buffers_test : public testing::Test {
 protected:
  record_buffers_test() {
    program = {};
    buffers_.use(13, give, take);
  }
  bool put(std::uint32_t number) {
    CUpti_ActivityAPI r{};
    r.kind = CUPTI_ACTIVITY_KIND_RUNTIME;
    r.correlationId = number;
    return buffers_.put(r.kind, &r);
  }
  record_buffers buffers_;
};

TEST_F(record_buffers_test, fill_one_buffer_after_the_other_and_lose_nothing) {
  program.size = 4 * sizeof(CUpti_ActivityAPI) + 8;
  for (std::uint32_t n = 1; n <= 10; ++n) EXPECT_TRUE(put(n));
  EXPECT_EQ(program.back.size(), 2u);
  buffers_.flush();
  buffers_.flush();  // there is none to give back
  ASSERT_EQ(program.back.size(), 3u);
  std::uint32_t expected = 0;
  for (std::vector<std::uint8_t>& b : program.back) {
    CUpti_Activity* record = nullptr;
    CUptiResult code = CUPTI_SUCCESS;
    while ((code = record_buffers::next(13, b.data(), b.size(), &record)) == CUPTI_SUCCESS)
      EXPECT_EQ(reinterpret_cast<CUpti_ActivityAPI*>(record)->correlationId, ++expected);
    EXPECT_EQ(code, CUPTI_ERROR_MAX_LIMIT_REACHED);
  }
  EXPECT_EQ(expected, 10u);
}

TEST_F(record_buffers_test, hold_no_more_records_than_the_program_wants) {
  program.most = 2;
  for (std::uint32_t n = 1; n <= 5; ++n) EXPECT_TRUE(put(n));
  buffers_.flush();
  EXPECT_EQ(program.back.size(), 3u);
}

TEST_F(record_buffers_test, a_record_without_room_is_lost_and_the_next_one_is_not) {
  program.none = true;
  EXPECT_FALSE(put(1));
  program.none = false;
  program.size = 16;
  EXPECT_FALSE(put(2));
  buffers_.flush();
  program.size = 1024;
  EXPECT_TRUE(put(3));
  buffers_.flush();
  EXPECT_EQ(program.back.back().size(), sizeof(CUpti_ActivityAPI));
}

TEST_F(record_buffers_test, records_of_another_kind_end_the_walk) {
  std::uint64_t words[8] = {CUPTI_ACTIVITY_KIND_INVALID};
  auto* const buffer = reinterpret_cast<std::uint8_t*>(words);
  CUpti_Activity* record = nullptr;
  EXPECT_EQ(record_buffers::next(13, buffer, sizeof words, &record), CUPTI_SUCCESS);
  EXPECT_EQ(record_buffers::next(13, buffer, sizeof words, &record), CUPTI_ERROR_INVALID_KIND);
  record = nullptr;
  EXPECT_EQ(record_buffers::next(13, buffer, 0, &record), CUPTI_ERROR_MAX_LIMIT_REACHED);
  EXPECT_EQ(record_buffers::next(13, nullptr, 8, &record), CUPTI_ERROR_INVALID_PARAMETER);
}

TEST_F(record_buffers_test, what_a_later_struct_has_more_is_zeros) {
  CUpti_ActivityKernel10 kernel;
  std::memset(&kernel, 0xee, sizeof kernel);
  kernel.kind = CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL;
  for (const int version : {12, 13}) {
    program.back.clear();
    buffers_.use(version, give, take);
    EXPECT_TRUE(buffers_.put(kernel.kind, &kernel));
    EXPECT_TRUE(put(7));
    buffers_.flush();
    std::vector<std::uint8_t>& b = program.back.back();
    CUpti_Activity* record = nullptr;
    ASSERT_EQ(record_buffers::next(version, b.data(), b.size(), &record), CUPTI_SUCCESS);
    const std::uint8_t* const end =
        reinterpret_cast<std::uint8_t*>(record) + record_buffers::size_of(version, kernel.kind);
    ASSERT_EQ(record_buffers::next(version, b.data(), b.size(), &record), CUPTI_SUCCESS);
    EXPECT_EQ(reinterpret_cast<CUpti_ActivityAPI*>(record)->correlationId, 7u);
    const auto* const other = reinterpret_cast<const std::uint8_t*>(record);
    // CUDA 13.5's kernel has 248 bytes, 13.0's 216.
    EXPECT_EQ(other - end, version < 13 ? 0 : 32);
    for (const std::uint8_t* more = end; more != other; ++more) EXPECT_EQ(*more, 0);
  }
}

TEST(record_sizes, are_those_of_the_program_s_version) {
  EXPECT_EQ(record_buffers::size_of(12, CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL),
            sizeof(CUpti_ActivityKernel9));
  EXPECT_EQ(record_buffers::size_of(13, CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL),
            sizeof(CUpti_ActivityKernel10));
  EXPECT_EQ(record_buffers::size_of(12, CUPTI_ACTIVITY_KIND_MEMCPY), sizeof(CUpti_ActivityMemcpy6));
  EXPECT_EQ(record_buffers::size_of(12, CUPTI_ACTIVITY_KIND_MARKER_DATA), sizeof(CUpti_ActivityMarkerData));
  EXPECT_EQ(record_buffers::size_of(13, CUPTI_ACTIVITY_KIND_MARKER_DATA), sizeof(CUpti_ActivityMarkerData2));
  EXPECT_EQ(record_buffers::size_of(13, CUPTI_ACTIVITY_KIND_JIT), 0u);
  // The earlier structs are beginnings of the later ones.
  EXPECT_EQ(offsetof(CUpti_ActivityKernel9, maxActiveClusters),
            offsetof(CUpti_ActivityKernel10, maxActiveClusters));
  EXPECT_EQ(offsetof(CUpti_ActivityMemory3, memoryPoolConfig.utilizedSize),
            offsetof(CUpti_ActivityMemory4, memoryPoolConfig.utilizedSize));
  EXPECT_EQ(offsetof(CUpti_ActivityGraphTrace, reserved), offsetof(CUpti_ActivityGraphTrace2, reserved));
  EXPECT_EQ(offsetof(CUpti_ActivityMarkerData, category), offsetof(CUpti_ActivityMarkerData2, category));
  EXPECT_EQ(offsetof(CUpti_ActivityMemcpy5, channelType), offsetof(CUpti_ActivityMemcpy6, channelType));
  EXPECT_EQ(offsetof(CUpti_ActivitySynchronization, cudaEventId),
            offsetof(CUpti_ActivitySynchronization2, cudaEventId));
}

}  // namespace
}  // namespace outboard::frontend::cupti
