#include "backend/opencl/kernel_arguments.hh"

#include <gtest/gtest.h>

#include <cstring>
#include <string>

namespace outboard::backend::opencl {
namespace {

using api::handle_kind;

/// What an argument is to a platform, and what its compiler reports of it.
struct parameter {
  enum class takes : std::uint8_t { bytes, memory, local, sampler } what;
  std::size_t size;
  const char* type;
};
using takes = parameter::takes;
constexpr parameter parameters[] = {
    {takes::bytes, 4, "int"},       {takes::bytes, 8, "long"},       {takes::bytes, 8, "pair"},
    {takes::memory, 8, "int*"},     {takes::local, 8, "float*"},     {takes::sampler, 8, "sampler_t"},
    {takes::sampler, 8, "my_kind"}, {takes::memory, 8, "image2d_t"},
};
enum : cl_uint { small, number, pair, memory, local, sampler, hidden, image, behind_all };

bool tells = true;
std::uint64_t followed = 0;  // the last value that the platform followed as a pointer

cl_int set(cl_kernel, cl_uint index, std::size_t size, const void* value) {
  const parameter& it = parameters[index];
  if (it.what == takes::local) return value || !size ? CL_INVALID_ARG_VALUE : CL_SUCCESS;
  if (size != it.size) return CL_INVALID_ARG_SIZE;
  if (it.what == takes::bytes) return value ? CL_SUCCESS : CL_INVALID_ARG_VALUE;
  std::uint64_t pointer = 0;
  if (value) std::memcpy(&pointer, value, sizeof pointer);
  if (pointer) followed = pointer;
  return it.what == takes::sampler && !pointer ? CL_INVALID_SAMPLER : CL_SUCCESS;
}

template <class T>
cl_int give(const T& value, std::size_t size, void* to) {
  if (size < sizeof value) return CL_INVALID_VALUE;
  std::memcpy(to, &value, sizeof value);
  return CL_SUCCESS;
}

cl_int info(cl_kernel, cl_uint index, cl_kernel_arg_info name, std::size_t size, void* to,
            std::size_t* wanted) {
  if (!tells) return CL_KERNEL_ARG_INFO_NOT_AVAILABLE;
  const parameter& it = parameters[index];
  if (name == CL_KERNEL_ARG_ADDRESS_QUALIFIER) {
    return give<cl_kernel_arg_address_qualifier>(it.what == takes::local    ? CL_KERNEL_ARG_ADDRESS_LOCAL
                                                 : it.what == takes::memory ? CL_KERNEL_ARG_ADDRESS_GLOBAL
                                                                            : CL_KERNEL_ARG_ADDRESS_PRIVATE,
                                                 size, to);
  }
  if (name == CL_KERNEL_ARG_TYPE_QUALIFIER) return give<cl_kernel_arg_type_qualifier>(0, size, to);
  if (wanted) *wanted = std::strlen(it.type) + 1;
  if (to) std::memcpy(to, it.type, std::min(size, std::strlen(it.type) + 1));
  return CL_SUCCESS;
}

struct kernel_arguments_test : testing::TestWithParam<bool> {
  kernel_arguments_test() {
    tells = GetParam(), followed = 0;
    table.clSetKernelArg = set;
    table.clGetKernelArgInfo = info;
    table.clGetKernelInfo = [](cl_kernel, cl_kernel_info, std::size_t size, void* to, std::size_t*) {
      return give<cl_uint>(behind_all, size, to);
    };
  }
  ~kernel_arguments_test() override { EXPECT_EQ(followed, 0u) << "a client's bytes were followed"; }

  api::opencl::function_table table;
  kernel_arguments all{table};
  const cl_kernel kernel = reinterpret_cast<cl_kernel>(&table);
};

TEST_P(kernel_arguments_test, take_bytes_where_bytes_are_meant) {
  EXPECT_EQ(all.check_value(kernel, small, 4), CL_SUCCESS);
  EXPECT_EQ(all.check_value(kernel, number, 8), CL_SUCCESS);
  EXPECT_EQ(all.check_value(kernel, pair, 8), CL_SUCCESS);
  for (const cl_uint index : {memory, local, sampler, hidden, image}) {
    for (const std::size_t size : {std::size_t{4}, std::size_t{7}, std::size_t{8}, std::size_t{64}})
      EXPECT_NE(all.check_value(kernel, index, size), CL_SUCCESS) << index << " " << size;
  }
  EXPECT_EQ(all.check_value(kernel, behind_all, 8), CL_INVALID_ARG_INDEX);
}

TEST_P(kernel_arguments_test, take_objects_of_their_kind_alone) {
  EXPECT_EQ(all.check_object(kernel, memory, handle_kind::cl_mem), CL_SUCCESS);
  EXPECT_EQ(all.check_object(kernel, memory, handle_kind::none), CL_SUCCESS);
  EXPECT_EQ(all.check_object(kernel, sampler, handle_kind::cl_sampler), CL_SUCCESS);
  EXPECT_EQ(all.check_object(kernel, hidden, handle_kind::cl_sampler), CL_SUCCESS);
  EXPECT_EQ(all.check_object(kernel, image, handle_kind::cl_mem), CL_SUCCESS);
  for (const cl_uint index : {number, pair, memory, local, sampler, hidden, image, behind_all}) {
    for (const handle_kind kind : {handle_kind::cl_context, handle_kind::cl_event, handle_kind::cl_device})
      EXPECT_NE(all.check_object(kernel, index, kind), CL_SUCCESS) << index;
  }
  for (const cl_uint index : {number, pair, local}) {
    const bool refused = all.check_object(kernel, index, handle_kind::cl_mem) != CL_SUCCESS;
    EXPECT_TRUE(refused || (!tells && index != local)) << index;
  }
  EXPECT_NE(all.check_object(kernel, memory, handle_kind::cl_sampler), CL_SUCCESS);
  for (const cl_uint index : {sampler, hidden}) {
    EXPECT_NE(all.check_object(kernel, index, handle_kind::cl_mem), CL_SUCCESS);
    EXPECT_NE(all.check_object(kernel, index, handle_kind::cl_command_queue), CL_SUCCESS);
  }
}

TEST_P(kernel_arguments_test, take_addresses_for_memory_alone) {
  EXPECT_EQ(all.check_address(kernel, memory), CL_SUCCESS);
  for (const cl_uint index : {small, number, pair, local, sampler, hidden, behind_all})
    EXPECT_NE(all.check_address(kernel, index), CL_SUCCESS) << index;
}

TEST_P(kernel_arguments_test, know_which_were_not_taken) {
  all.note(kernel, 1, CL_INVALID_ARG_SIZE);
  all.note(kernel, 1, CL_INVALID_ARG_VALUE);
  all.note(kernel, 4, CL_INVALID_SAMPLER);
  all.note(kernel, 1 << 30, CL_INVALID_SAMPLER);  // the kernel has no such argument
  EXPECT_EQ(all.failed(kernel), CL_INVALID_ARG_VALUE);
  all.note(kernel, 1, CL_SUCCESS);
  EXPECT_EQ(all.failed(kernel), CL_INVALID_SAMPLER);
  all.note(kernel, 4, CL_SUCCESS);
  EXPECT_EQ(all.failed(kernel), CL_SUCCESS);
  all.note(kernel, 4, CL_INVALID_SAMPLER);
  all.forget(kernel);
  EXPECT_EQ(all.failed(kernel), CL_SUCCESS);
}

/// PoCL is such a platform.
TEST(kernel_arguments_of_a_sloppy_platform, take_objects_that_zeros_are_taken_for) {
  tells = false;
  api::opencl::function_table table;
  table.clSetKernelArg = [](cl_kernel, cl_uint, std::size_t size, const void* value) -> cl_int {
    return size != 8 ? CL_INVALID_ARG_SIZE : value ? CL_SUCCESS : CL_INVALID_ARG_VALUE;
  };
  table.clGetKernelArgInfo = info;
  table.clGetKernelInfo = [](cl_kernel, cl_kernel_info, std::size_t size, void* to, std::size_t*) {
    return give<cl_uint>(1, size, to);
  };
  kernel_arguments all(table);
  const auto kernel = reinterpret_cast<cl_kernel>(&table);
  for (const handle_kind kind : {handle_kind::cl_mem, handle_kind::cl_sampler})
    EXPECT_EQ(all.check_object(kernel, 0, kind), CL_SUCCESS);
  EXPECT_EQ(all.check_value(kernel, 0, 8), CL_SUCCESS);
  EXPECT_NE(all.check_object(kernel, 0, handle_kind::cl_context), CL_SUCCESS);
  EXPECT_NE(all.check_address(kernel, 0), CL_SUCCESS);
}

INSTANTIATE_TEST_SUITE_P(with_and_without_the_compilers_word, kernel_arguments_test, testing::Bool());

}  // namespace
}  // namespace outboard::backend::opencl
