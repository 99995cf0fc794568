#include "backend/cuda/any_thread.hh"

#include <gtest/gtest.h>

#include "api/cuda/functions.hh"
#include "marshal/cuda/launch_bodies.hh"

namespace outboard::backend {
namespace {

wire::frame_header post(api::opcode code) {
  wire::frame_header header;
  header.kind = wire::frame_kind::post;
  header.opcode = static_cast<std::uint32_t>(code);
  return header;
}

std::vector<std::byte> launch(std::uint64_t stream, bool per_thread) {
  const marshal::launch_body body{.head = {.kernel = 77,
                                           .stream = stream,
                                           .grid = {1, 2, 3},
                                           .block = {1, 2, 3},
                                           .shared = 4,
                                           .per_thread = per_thread}};
  return marshal::payload_of(body);
}

TEST(any_thread, launches_on_streams_that_are_no_threads_own) {
  const auto header = post(api::opcode::cuLaunchKernel);
  EXPECT_TRUE(any_thread_may(header, launch(0, false)));
  EXPECT_TRUE(any_thread_may(header, launch(1, false)));
  EXPECT_TRUE(any_thread_may(header, launch(0x1234500, false)));
  EXPECT_FALSE(any_thread_may(header, launch(2, false)));
  EXPECT_FALSE(any_thread_may(header, launch(0, true)));
}

TEST(any_thread, calls_are_for_their_thread) {
  auto header = post(api::opcode::cuLaunchKernel);
  header.kind = wire::frame_kind::call;
  EXPECT_FALSE(any_thread_may(header, launch(0, false)));
}

TEST(any_thread, what_is_cut_short_is_not_guessed_at) {
  const auto whole = launch(0, false);
  for (std::size_t size = 0; size < 45; ++size)
    EXPECT_FALSE(any_thread_may(post(api::opcode::cuLaunchKernel), std::span(whole).first(size))) << size;
  EXPECT_FALSE(any_thread_may(post(api::opcode::cuEventRecord), std::span(whole).first(15)));
}

TEST(any_thread, events_by_their_stream) {
  const std::array<std::uint64_t, 2> record{5, 2}, wait{2, 5};
  EXPECT_FALSE(any_thread_may(post(api::opcode::cuEventRecord), std::as_bytes(std::span(record))));
  EXPECT_TRUE(any_thread_may(post(api::opcode::cuEventRecord), std::as_bytes(std::span(wait))));
  EXPECT_FALSE(any_thread_may(post(api::opcode::cuStreamWaitEvent), std::as_bytes(std::span(wait))));
  EXPECT_TRUE(any_thread_may(post(api::opcode::cuStreamWaitEvent), std::as_bytes(std::span(record))));
}

TEST(any_thread, nothing_else) {
  const std::array<std::uint64_t, 4> any{};
  EXPECT_FALSE(any_thread_may(post(api::opcode::cuEventRecord_ptsz), std::as_bytes(std::span(any))));
  EXPECT_FALSE(any_thread_may(post(api::opcode::cuCtxSetCurrent), std::as_bytes(std::span(any))));
}

TEST(lone_launch_stream, is_that_of_a_posted_launch_which_concerns_nothing_else) {
  const auto header = post(api::opcode::cuLaunchKernel);
  EXPECT_EQ(lone_launch_stream(header, launch(0x1234500, false)), 0x1234500u);
  EXPECT_EQ(lone_launch_stream(header, launch(0x1234500, true)), 0x1234500u);
  for (const std::uint64_t no_one : {0u, 1u, 2u})
    EXPECT_EQ(lone_launch_stream(header, launch(no_one, false)), 0u);
  EXPECT_EQ(lone_launch_stream(post(api::opcode::cuEventRecord), launch(0x1234500, false)), 0u);
  auto call = header;
  call.kind = wire::frame_kind::call;
  EXPECT_EQ(lone_launch_stream(call, launch(0x1234500, false)), 0u);
  const auto whole = launch(0x1234500, false);
  EXPECT_EQ(lone_launch_stream(header, std::span(whole).first(50)), 0u);
}

TEST(lone_launch_stream, is_none_where_a_launch_records_events_for_others) {
  const auto with = [](std::uint32_t first, std::uint32_t second) {
    const marshal::launch_attribute attributes[] = {{.id = first}, {.id = second}};
    const marshal::launch_body body{.head = {.kernel = 77, .stream = 0x1234500, .extended = true},
                                    .attributes = std::span<const marshal::launch_attribute>(attributes)};
    return lone_launch_stream(post(api::opcode::cuLaunchKernelEx), marshal::payload_of(body));
  };
  EXPECT_EQ(with(CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION, CU_LAUNCH_ATTRIBUTE_PRIORITY), 0x1234500u);
  EXPECT_EQ(with(CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION, CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_EVENT), 0u);
  EXPECT_EQ(with(CU_LAUNCH_ATTRIBUTE_LAUNCH_COMPLETION_EVENT, CU_LAUNCH_ATTRIBUTE_PRIORITY), 0u);
}

}  // namespace
}  // namespace outboard::backend
