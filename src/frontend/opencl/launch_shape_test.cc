#include "frontend/opencl/launch_shape.hh"

#include <gtest/gtest.h>

namespace outboard::frontend::opencl {
namespace {

using sizes = std::array<std::size_t, 3>;
using marshal::opencl::info_value;

template <class T>
info_value info_of(cl_device_info name, const T& value) {
  info_value info{name, std::vector<std::uint8_t>(sizeof value)};
  std::memcpy(info.value.data(), &value, sizeof value);
  return info;
}

/// A device with three dimensions and groups of at most 64 items (64 by 64 by 8), and a kernel that it built.
class launch_shape : public testing::Test {
 protected:
  launch_shape() {
    auto about = std::make_unique<device_info>();
    about->facts.info = {info_of(CL_DEVICE_MAX_WORK_ITEM_DIMENSIONS, cl_uint{3}),
                         info_of(CL_DEVICE_MAX_WORK_ITEM_SIZES, sizes{64, 64, 8}),
                         info_of(CL_DEVICE_MAX_WORK_GROUP_SIZE, std::size_t{64})};
    device = reinterpret_cast<cl_device_id>(make_named(handle_kind::cl_device, 77, std::move(about)));
    built = std::make_shared<marshal::opencl::build_reply>();
    built->devices.resize(1);
    built->devices[0].device = 77;
    described.devices.resize(1);
    described.devices[0].size = 32;
    kernel.facts = built;
    kernel.about = &described;
  }
  shape_check check(cl_uint dimensions, sizes global, const sizes* local = nullptr,
                    const sizes* offset = nullptr) {
    return check_shape(kernel, device, dimensions, offset ? offset->data() : nullptr, global.data(),
                       local ? local->data() : nullptr);
  }

  cl_device_id device = nullptr;
  std::shared_ptr<marshal::opencl::build_reply> built;
  marshal::opencl::kernel_facts described;
  kernel_info kernel;
};

TEST_F(launch_shape, a_launch_that_fits_is_certain) {
  const sizes local{8, 4, 1};
  const shape_check fits = check(2, {16, 8, 0}, &local);
  EXPECT_EQ(fits.code, CL_SUCCESS);
  EXPECT_TRUE(fits.certain);
  EXPECT_TRUE(check(1, {1000, 0, 0}).certain);
}

TEST_F(launch_shape, a_launch_beyond_the_limits_is_refused_at_once) {
  EXPECT_EQ(check(0, {1, 1, 1}).code, CL_INVALID_WORK_DIMENSION);
  EXPECT_EQ(check(4, {1, 1, 1}).code, CL_INVALID_WORK_DIMENSION);
  sizes local{1, 1, 16};
  EXPECT_EQ(check(3, {1, 1, 16}, &local).code, CL_INVALID_WORK_ITEM_SIZE);
  local = {16, 16, 1};
  EXPECT_EQ(check(2, {16, 16, 1}, &local).code, CL_INVALID_WORK_GROUP_SIZE);
  local = {0, 1, 1};
  EXPECT_EQ(check(1, {4, 1, 1}, &local).code, CL_INVALID_WORK_GROUP_SIZE);
  const sizes far{~std::size_t{0}, 0, 0};
  EXPECT_EQ(check(1, {2, 1, 1}, nullptr, &far).code, CL_INVALID_GLOBAL_OFFSET);
}

TEST_F(launch_shape, the_device_is_asked_what_it_may_know_better) {
  sizes local{5, 1, 1};
  EXPECT_FALSE(check(1, {16, 1, 1}, &local).certain);  // does not divide
  local = {64, 1, 1};
  EXPECT_FALSE(check(1, {64, 1, 1}, &local).certain);  // more than this kernel's own size
  EXPECT_FALSE(check(1, {0, 1, 1}).certain);
}

TEST_F(launch_shape, only_the_size_that_the_kernel_fixes_is_accepted) {
  described.devices[0].compiled = {8, 1, 1};
  sizes local{8, 1, 1};
  EXPECT_EQ(check(1, {16, 1, 1}, &local).code, CL_SUCCESS);
  local[0] = 4;
  EXPECT_EQ(check(1, {16, 1, 1}, &local).code, CL_INVALID_WORK_GROUP_SIZE);
  EXPECT_FALSE(check(1, {16, 1, 1}).certain);
}

TEST_F(launch_shape, a_device_without_a_build_runs_nothing) {
  built->devices[0].device = 78;
  EXPECT_EQ(check(1, {16, 1, 1}).code, CL_INVALID_PROGRAM_EXECUTABLE);
}

}  // namespace
}  // namespace outboard::frontend::opencl
