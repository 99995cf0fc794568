#include "backend/cuda/launch_decoding.hh"

#include <gtest/gtest.h>

#include <cstring>

namespace outboard::backend {
namespace {

std::vector<std::byte> encoded(const marshal::launch_body& body) {
  std::vector<std::byte> bytes;
  wire::writer w(bytes);
  marshal::put_body(w, body);
  return bytes;
}

marshal::launch_body sample() {
  marshal::launch_body body;
  body.kernel = 0x1111, body.stream = 2;
  body.grid = {1, 2, 3}, body.block = {4, 5, 6};
  body.shared = 7;
  body.per_thread = true;
  body.parameters = {1, 2, 3, 4, 5};
  return body;
}

marshal::launch_attribute attribute(CUlaunchAttributeID id, const CUlaunchAttributeValue& value) {
  marshal::launch_attribute a;
  a.id = static_cast<std::uint32_t>(id);
  std::memcpy(a.value.data(), &value, sizeof value);
  return a;
}

TEST(arrived_launch, is_the_body_field_by_field) {
  marshal::launch_body body = sample();
  CUlaunchAttributeValue cluster{};
  cluster.clusterDim.x = 2, cluster.clusterDim.y = 1, cluster.clusterDim.z = 1;
  body.extended = true;
  body.attributes.push_back(attribute(CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION, cluster));
  const auto bytes = encoded(body);
  wire::reader from(bytes);
  object_tables objects;
  arrived_launch l;
  CUresult code = CUDA_SUCCESS;
  ASSERT_TRUE(l.take(from, objects, code));
  EXPECT_EQ(code, CUDA_SUCCESS);
  EXPECT_EQ(l.kernel, body.kernel);
  EXPECT_EQ(l.stream, body.stream);
  EXPECT_EQ(l.grid, body.grid);
  EXPECT_EQ(l.block, body.block);
  EXPECT_EQ(l.shared, body.shared);
  EXPECT_TRUE(l.per_thread);
  EXPECT_FALSE(l.cooperative);
  EXPECT_TRUE(l.extended);
  ASSERT_EQ(l.attributes.count(), 1u);
  EXPECT_EQ(l.attributes.data()[0].value.clusterDim.x, 2u);
  ASSERT_EQ(l.parameters.size(), 5u);
  EXPECT_EQ(l.parameters[4], std::byte{5});
}

TEST(arrived_launch, every_truncation_is_malformed) {
  marshal::launch_body body = sample();
  body.attributes.push_back(attribute(CU_LAUNCH_ATTRIBUTE_PRIORITY, {}));
  const auto bytes = encoded(body);
  for (std::size_t n = 0; n < bytes.size(); ++n) {
    wire::reader from(std::span<const std::byte>(bytes).first(n));
    object_tables objects;
    arrived_launch l;
    CUresult code = CUDA_SUCCESS;
    EXPECT_FALSE(l.take(from, objects, code)) << n;
  }
}

TEST(native_attributes, events_become_the_driver_s_own) {
  object_tables objects;
  auto* const native = reinterpret_cast<void*>(0xabc0);
  const auto kind = static_cast<std::uint8_t>(api::handle_kind::event);
  const std::uint64_t id = wire::handle::make(kind, 0, 1).value;
  ASSERT_TRUE(objects.create(id, native, {}));
  CUlaunchAttributeValue value{};
  value.programmaticEvent.event = reinterpret_cast<CUevent>(id);
  value.programmaticEvent.flags = 3;
  marshal::launch_body body = sample();
  body.attributes.push_back(attribute(CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_EVENT, value));
  value = {};
  value.launchCompletionEvent.event = reinterpret_cast<CUevent>(id);
  body.attributes.push_back(attribute(CU_LAUNCH_ATTRIBUTE_LAUNCH_COMPLETION_EVENT, value));
  auto bytes = encoded(body);
  {
    wire::reader from(bytes);
    arrived_launch l;
    CUresult code = CUDA_SUCCESS;
    ASSERT_TRUE(l.take(from, objects, code));
    EXPECT_EQ(code, CUDA_SUCCESS);
    EXPECT_EQ(l.attributes.data()[0].value.programmaticEvent.event, native);
    EXPECT_EQ(l.attributes.data()[0].value.programmaticEvent.flags, 3);
    EXPECT_EQ(l.attributes.data()[1].value.launchCompletionEvent.event, native);
  }
  objects.erase(id);
  wire::reader from(bytes);
  arrived_launch l;
  CUresult code = CUDA_SUCCESS;
  ASSERT_TRUE(l.take(from, objects, code));
  EXPECT_EQ(code, CUDA_ERROR_INVALID_HANDLE);
}

TEST(native_attributes, one_that_is_not_known_is_refused_with_its_value) {
  CUlaunchAttributeValue value;
  std::memset(static_cast<void*>(&value), 0x41, sizeof value);
  for (const int id : {15, 17, 18, 64, 1000}) {
    marshal::launch_body body = sample();
    body.attributes.push_back(attribute(static_cast<CUlaunchAttributeID>(id), value));
    const auto bytes = encoded(body);
    wire::reader from(bytes);
    object_tables objects;
    arrived_launch l;
    CUresult code = CUDA_SUCCESS;
    ASSERT_TRUE(l.take(from, objects, code));
    EXPECT_EQ(code, CUDA_ERROR_INVALID_VALUE) << id;
    EXPECT_EQ(l.attributes.data()[0].value.pad[0], 0) << "nothing of it reaches a driver";
  }
}

TEST(native_attributes, what_a_driver_tells_of_one_has_no_handles_of_this_process) {
  CUlaunchAttributeValue value{};
  value.programmaticEvent.event = reinterpret_cast<CUevent>(0x1000);
  value.programmaticEvent.flags = 3;
  EXPECT_TRUE(hide_handles(CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_EVENT, value));
  EXPECT_EQ(value.programmaticEvent.event, nullptr);
  EXPECT_EQ(value.programmaticEvent.flags, 3);
  value.deviceUpdatableKernelNode.devNode = reinterpret_cast<CUgraphDeviceNode>(0x1000);
  EXPECT_TRUE(hide_handles(CU_LAUNCH_ATTRIBUTE_DEVICE_UPDATABLE_KERNEL_NODE, value));
  EXPECT_EQ(value.deviceUpdatableKernelNode.devNode, nullptr);
  value.priority = -1;
  EXPECT_TRUE(hide_handles(CU_LAUNCH_ATTRIBUTE_PRIORITY, value));
  EXPECT_EQ(value.priority, -1);
  EXPECT_FALSE(hide_handles(64, value));
}

TEST(native_attributes, a_pointer_of_the_peer_s_never_reaches_the_driver) {
  CUlaunchAttributeValue value{};
  value.deviceUpdatableKernelNode.deviceUpdatable = 1;
  value.deviceUpdatableKernelNode.devNode = reinterpret_cast<CUgraphDeviceNode>(0x1000);
  marshal::launch_body body = sample();
  body.attributes.push_back(attribute(CU_LAUNCH_ATTRIBUTE_DEVICE_UPDATABLE_KERNEL_NODE, value));
  const auto bytes = encoded(body);
  wire::reader from(bytes);
  object_tables objects;
  arrived_launch l;
  CUresult code = CUDA_SUCCESS;
  ASSERT_TRUE(l.take(from, objects, code));
  EXPECT_EQ(code, CUDA_ERROR_NOT_SUPPORTED);
  EXPECT_EQ(l.attributes.data()[0].value.deviceUpdatableKernelNode.devNode, nullptr);
}

TEST(native_attributes, the_cooperative_flag_fits_beside_the_most_attributes) {
  marshal::launch_body body = sample();
  for (std::size_t i = 0; i < marshal::max_launch_attributes; ++i) {
    body.attributes.push_back(attribute(CU_LAUNCH_ATTRIBUTE_IGNORE, {}));
  }
  const auto bytes = encoded(body);
  wire::reader from(bytes);
  object_tables objects;
  arrived_launch l;
  CUresult code = CUDA_SUCCESS;
  ASSERT_TRUE(l.take(from, objects, code));
  l.attributes.add_cooperative();
  l.attributes.add_cooperative();  // it is there already
  EXPECT_EQ(l.attributes.count(), marshal::max_launch_attributes + 1);
  EXPECT_EQ(l.attributes.data()[marshal::max_launch_attributes].id, CU_LAUNCH_ATTRIBUTE_COOPERATIVE);

  body.attributes.push_back(attribute(CU_LAUNCH_ATTRIBUTE_IGNORE, {}));
  const auto many = encoded(body);
  wire::reader too_many(many);
  EXPECT_FALSE(arrived_launch().take(too_many, objects, code));
}

}  // namespace
}  // namespace outboard::backend
