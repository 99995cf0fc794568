#include "backend/cuda/any_thread.hh"

#include <gtest/gtest.h>

#include "api/cuda/functions.hh"
#include "marshal/cuda/bodies.hh"
#include "wire/cursor.hh"

namespace outboard::backend {
namespace {

wire::frame_header post(api::opcode code) {
  wire::frame_header header;
  header.kind = wire::frame_kind::post;
  header.opcode = static_cast<std::uint32_t>(code);
  return header;
}

std::vector<std::byte> launch(std::uint64_t stream, bool per_thread) {
  marshal::launch_body body;
  body.kernel = 77;
  body.stream = stream;
  body.grid = body.block = {1, 2, 3};
  body.shared = 4;
  body.per_thread = per_thread;
  std::vector<std::byte> bytes;
  wire::writer w(bytes);
  marshal::put_body(w, body);
  return bytes;
}

TEST(any_thread, LaunchesOnStreamsThatAreNoThreadsOwn) {
  const auto header = post(api::opcode::cuLaunchKernel);
  EXPECT_TRUE(any_thread_may(header, launch(0, false)));
  EXPECT_TRUE(any_thread_may(header, launch(1, false)));
  EXPECT_TRUE(any_thread_may(header, launch(0x1234500, false)));
  EXPECT_FALSE(any_thread_may(header, launch(2, false)));
  EXPECT_FALSE(any_thread_may(header, launch(0, true)));
}

TEST(any_thread, CallsAreForTheirThread) {
  auto header = post(api::opcode::cuLaunchKernel);
  header.kind = wire::frame_kind::call;
  EXPECT_FALSE(any_thread_may(header, launch(0, false)));
}

TEST(any_thread, WhatIsCutShortIsNotGuessedAt) {
  const auto whole = launch(0, false);
  for (std::size_t size = 0; size < 45; ++size)
    EXPECT_FALSE(any_thread_may(post(api::opcode::cuLaunchKernel), std::span(whole).first(size))) << size;
  EXPECT_FALSE(any_thread_may(post(api::opcode::cuEventRecord), std::span(whole).first(15)));
}

TEST(any_thread, LaunchesThatConcernOnlyTheirStream) {
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

TEST(any_thread, EventsThatALaunchRecordsConcernOthers) {
  const auto with = [](std::uint32_t first, std::uint32_t second) {
    marshal::launch_body body;
    body.kernel = 77;
    body.stream = 0x1234500;
    body.extended = true;
    for (const std::uint32_t id : {first, second}) {
      marshal::launch_attribute attribute;
      attribute.id = id;
      body.attributes.push_back(attribute);
    }
    std::vector<std::byte> bytes;
    wire::writer w(bytes);
    marshal::put_body(w, body);
    return lone_launch_stream(post(api::opcode::cuLaunchKernelEx), bytes);
  };
  EXPECT_EQ(with(CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION, CU_LAUNCH_ATTRIBUTE_PRIORITY), 0x1234500u);
  EXPECT_EQ(with(CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION, CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_EVENT), 0u);
  EXPECT_EQ(with(CU_LAUNCH_ATTRIBUTE_LAUNCH_COMPLETION_EVENT, CU_LAUNCH_ATTRIBUTE_PRIORITY), 0u);
}

TEST(any_thread, EventsByTheirStream) {
  const std::array<std::uint64_t, 2> record{5, 2}, wait{2, 5};
  EXPECT_FALSE(any_thread_may(post(api::opcode::cuEventRecord), std::as_bytes(std::span(record))));
  EXPECT_TRUE(any_thread_may(post(api::opcode::cuEventRecord), std::as_bytes(std::span(wait))));
  EXPECT_FALSE(any_thread_may(post(api::opcode::cuStreamWaitEvent), std::as_bytes(std::span(wait))));
  EXPECT_TRUE(any_thread_may(post(api::opcode::cuStreamWaitEvent), std::as_bytes(std::span(record))));
}

TEST(any_thread, NothingElse) {
  const std::array<std::uint64_t, 4> any{};
  EXPECT_FALSE(any_thread_may(post(api::opcode::cuEventRecord_ptsz), std::as_bytes(std::span(any))));
  EXPECT_FALSE(any_thread_may(post(api::opcode::cuCtxSetCurrent), std::as_bytes(std::span(any))));
}

}  // namespace
}  // namespace outboard::backend
