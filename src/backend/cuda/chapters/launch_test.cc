#include "backend/cuda/chapters/launch.hh"

#include <gtest/gtest.h>

#include <cstring>

namespace outboard::backend {
namespace {

using attributes = std::vector<marshal::launch_attribute>;

marshal::launch_attribute attribute(CUlaunchAttributeID id, const CUlaunchAttributeValue& value) {
  marshal::launch_attribute a;
  a.id = static_cast<std::uint32_t>(id);
  std::memcpy(a.value.data(), &value, sizeof value);
  return a;
}

CUresult take(native_attributes& to, const attributes& from, object_tables& objects) {
  return to.take(std::span<const marshal::launch_attribute>(from), objects);
}

TEST(native_attributes, are_those_that_arrived) {
  CUlaunchAttributeValue cluster{}, priority{};
  cluster.clusterDim.x = 2, cluster.clusterDim.y = 3, cluster.clusterDim.z = 4;
  priority.priority = -1;
  object_tables objects;
  native_attributes native;
  ASSERT_EQ(take(native,
                 {attribute(CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION, cluster),
                  attribute(CU_LAUNCH_ATTRIBUTE_PRIORITY, priority)},
                 objects),
            CUDA_SUCCESS);
  ASSERT_EQ(native.count(), 2u);
  EXPECT_EQ(native.data()[0].id, CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION);
  EXPECT_EQ(native.data()[0].value.clusterDim.x, 2u);
  EXPECT_EQ(native.data()[0].value.clusterDim.z, 4u);
  EXPECT_EQ(native.data()[1].id, CU_LAUNCH_ATTRIBUTE_PRIORITY);
  EXPECT_EQ(native.data()[1].value.priority, -1);
}

TEST(native_attributes, events_become_the_driver_s_own) {
  object_tables objects;
  auto* const event = reinterpret_cast<void*>(0xabc0);
  const auto kind = static_cast<std::uint8_t>(api::handle_kind::event);
  const std::uint64_t id = wire::handle::make(kind, 0, 1).value;
  ASSERT_TRUE(objects.create(id, event, {}));
  CUlaunchAttributeValue first{}, second{};
  first.programmaticEvent.event = reinterpret_cast<CUevent>(id);
  first.programmaticEvent.flags = 3;
  second.launchCompletionEvent.event = reinterpret_cast<CUevent>(id);
  const attributes both{attribute(CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_EVENT, first),
                        attribute(CU_LAUNCH_ATTRIBUTE_LAUNCH_COMPLETION_EVENT, second)};
  native_attributes native;
  EXPECT_EQ(take(native, both, objects), CUDA_SUCCESS);
  EXPECT_EQ(native.data()[0].value.programmaticEvent.event, event);
  EXPECT_EQ(native.data()[0].value.programmaticEvent.flags, 3);
  EXPECT_EQ(native.data()[1].value.launchCompletionEvent.event, event);
  objects.erase(id);
  EXPECT_EQ(take(native, both, objects), CUDA_ERROR_INVALID_HANDLE);
}

TEST(native_attributes, a_pointer_of_the_peer_s_never_reaches_the_driver) {
  CUlaunchAttributeValue value{};
  value.deviceUpdatableKernelNode.deviceUpdatable = 1;
  value.deviceUpdatableKernelNode.devNode = reinterpret_cast<CUgraphDeviceNode>(0x1000);
  object_tables objects;
  native_attributes native;
  EXPECT_EQ(take(native, {attribute(CU_LAUNCH_ATTRIBUTE_DEVICE_UPDATABLE_KERNEL_NODE, value)}, objects),
            CUDA_ERROR_NOT_SUPPORTED);
  EXPECT_EQ(native.data()[0].value.deviceUpdatableKernelNode.devNode, nullptr);
}

TEST(native_attributes, one_that_is_not_known_is_refused_with_its_value) {
  object_tables objects;
  CUlaunchAttributeValue value;
  std::memset(&value, 0x41, sizeof value);
  for (const int id : {15, 17, 18, 64, 1000}) {
    native_attributes native;
    EXPECT_EQ(take(native, {attribute(static_cast<CUlaunchAttributeID>(id), value)}, objects),
              CUDA_ERROR_INVALID_VALUE)
        << id;
    EXPECT_EQ(native.data()[0].value.pad[0], 0) << "nothing of it reaches a driver";
  }
}

TEST(native_attributes, the_cooperative_flag_fits_beside_the_most_attributes) {
  object_tables objects;
  native_attributes native;
  const attributes most(marshal::max_launch_attributes, attribute(CU_LAUNCH_ATTRIBUTE_IGNORE, {}));
  ASSERT_EQ(take(native, most, objects), CUDA_SUCCESS);
  native.add_cooperative();
  native.add_cooperative();  // it is there already
  EXPECT_EQ(native.count(), marshal::max_launch_attributes + 1);
  EXPECT_EQ(native.data()[marshal::max_launch_attributes].id, CU_LAUNCH_ATTRIBUTE_COOPERATIVE);
}

}  // namespace
}  // namespace outboard::backend
