#include "bench/program.hh"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <cstdlib>
#include <cstring>

#include "bench/driver.hh"
#include "bench/rows.hh"

namespace outboard::bench {
namespace {

using ::testing::HasSubstr;
using ::testing::StartsWith;

/// A driver whose device is this process, with the faults that the program must see.
struct faults {
  int launch_without_work = -1;  ///< counted from 0
  bool copies_spoil_a_byte = false;
  bool no_locked_memory = false;
  bool no_device = false;
} wrong;
int launches = 0;

template <class Handle>
Handle handle() {
  return reinterpret_cast<Handle>(std::uintptr_t{8});
}

void* at(CUdeviceptr there) { return reinterpret_cast<void*>(there); }

CUresult copy_out(void* here, CUdeviceptr there, std::size_t bytes) {
  std::memcpy(here, at(there), bytes);
  if (wrong.copies_spoil_a_byte && bytes == mebibyte) static_cast<char*>(here)[bytes - 1] ^= 1;
  return CUDA_SUCCESS;
}

CUresult launch(CUfunction, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, CUstream,
                void** parameters, void**) {
  CUdeviceptr word = 0;
  std::uint32_t value = 0, sum = 0;
  std::memcpy(&word, parameters[0], sizeof word);
  std::memcpy(&value, parameters[1], sizeof value);
  std::memcpy(&sum, at(word), sizeof sum);
  sum += launches++ == wrong.launch_without_work ? 0 : value;
  std::memcpy(at(word), &sum, sizeof sum);
  return CUDA_SUCCESS;
}

driver fake() {
  wrong = {};
  launches = 0;
  driver d;
  d.cuInit = [](unsigned) { return CUDA_SUCCESS; };
  d.cuDriverGetVersion = [](int* version) { return *version = 13000, CUDA_SUCCESS; };
  d.cuDeviceGet = [](CUdevice* device, int) {
    return *device = 0, wrong.no_device ? CUDA_ERROR_NO_DEVICE : CUDA_SUCCESS;
  };
  d.cuDeviceGetName = [](char* name, int, CUdevice) { return std::strcpy(name, "fake"), CUDA_SUCCESS; };
  d.cuDevicePrimaryCtxRetain = [](CUcontext* context, CUdevice) {
    return *context = handle<CUcontext>(), CUDA_SUCCESS;
  };
  d.cuDevicePrimaryCtxRelease = [](CUdevice) { return CUDA_SUCCESS; };
  d.cuCtxSetCurrent = [](CUcontext) { return CUDA_SUCCESS; };
  d.cuCtxSynchronize = [] { return CUDA_SUCCESS; };
  d.cuStreamCreate = [](CUstream* stream, unsigned) { return *stream = handle<CUstream>(), CUDA_SUCCESS; };
  d.cuStreamSynchronize = [](CUstream) { return CUDA_SUCCESS; };
  d.cuEventCreate = [](CUevent* event, unsigned) { return *event = handle<CUevent>(), CUDA_SUCCESS; };
  d.cuEventRecord = [](CUevent, CUstream) { return CUDA_SUCCESS; };
  d.cuEventSynchronize = [](CUevent) { return CUDA_SUCCESS; };
  d.cuModuleLoadData = [](CUmodule* module, const void*) {
    return *module = handle<CUmodule>(), CUDA_SUCCESS;
  };
  d.cuModuleGetFunction = [](CUfunction* function, CUmodule, const char*) {
    return *function = handle<CUfunction>(), CUDA_SUCCESS;
  };
  d.cuLaunchKernel = launch;
  d.cuMemGetInfo = [](std::size_t* free, std::size_t* total) {
    return *free = *total = 1 << 30, CUDA_SUCCESS;
  };
  d.cuMemAlloc = [](CUdeviceptr* there, std::size_t bytes) {
    return *there = reinterpret_cast<CUdeviceptr>(std::calloc(bytes, 1)), CUDA_SUCCESS;
  };
  d.cuMemFree = [](CUdeviceptr there) { return std::free(at(there)), CUDA_SUCCESS; };
  d.cuMemHostAlloc = [](void** here, std::size_t bytes, unsigned) {
    if (wrong.no_locked_memory) return CUDA_ERROR_OUT_OF_MEMORY;
    return *here = std::calloc(bytes, 1), CUDA_SUCCESS;
  };
  d.cuMemFreeHost = [](void* here) { return std::free(here), CUDA_SUCCESS; };
  d.cuMemcpyHtoD = [](CUdeviceptr there, const void* here, std::size_t bytes) {
    return std::memcpy(at(there), here, bytes), CUDA_SUCCESS;
  };
  d.cuMemcpyDtoH = copy_out;
  d.cuMemcpyDtoHAsync = [](void* here, CUdeviceptr there, std::size_t bytes, CUstream) {
    return copy_out(here, there, bytes);
  };
  d.cuGetErrorName = [](CUresult code, const char** name) {
    return *name = code == CUDA_ERROR_OUT_OF_MEMORY ? "OUT" : "OTHER", CUDA_SUCCESS;
  };
  return d;
}

const program_options quick{"", 0.02, 2 * mebibyte};

TEST(program, gives_every_row_but_the_line) {
  const driver d = fake();
  const auto ran = run_program(d, quick);
  ASSERT_TRUE(ran.ok()) << ran.error().message;
  EXPECT_EQ(ran->device, "fake");
  for (const row& each : rows()) {
    if (each.name == line_row) continue;
    ASSERT_TRUE(ran->values.contains(std::string(each.name))) << each.name;
    EXPECT_GT(ran->values.at(std::string(each.name)), 0) << each.name;
  }
  EXPECT_TRUE(ran->missing.empty());
}

TEST(program, leaves_large_copies_out_where_none_are_asked_for) {
  const driver d = fake();
  const auto ran = run_program(d, {"", 0.02, 0});
  ASSERT_TRUE(ran.ok()) << ran.error().message;
  EXPECT_FALSE(ran->values.contains("in_locked_bulk"));
  EXPECT_TRUE(ran->values.contains("in_locked_1m"));
}

TEST(program, sees_a_launch_that_did_nothing) {
  for (const int which : {0, 5, 300}) {
    const driver d = fake();
    wrong.launch_without_work = which;
    const auto ran = run_program(d, quick);
    ASSERT_FALSE(ran.ok()) << which;
    EXPECT_THAT(ran.error().message, StartsWith("wrong result")) << which;
  }
}

TEST(program, sees_a_byte_that_did_not_come_back) {
  const driver d = fake();
  wrong.copies_spoil_a_byte = true;
  const auto ran = run_program(d, quick);
  ASSERT_FALSE(ran.ok());
  EXPECT_THAT(ran.error().message, HasSubstr("\"out_pageable_1m\" did not bring back"));
}

TEST(program, says_why_a_row_is_missing_and_goes_on) {
  const driver d = fake();
  wrong.no_locked_memory = true;
  const auto ran = run_program(d, quick);
  ASSERT_TRUE(ran.ok()) << ran.error().message;
  for (const char* name : {"in_locked_4k", "out_locked_bulk"}) {
    EXPECT_FALSE(ran->values.contains(name));
    EXPECT_EQ(ran->missing.at(name), "cuMemHostAlloc gave OUT");
  }
  EXPECT_TRUE(ran->values.contains("out_pageable_bulk"));
}

TEST(program, needs_a_device_and_a_driver) {
  const driver d = fake();
  wrong.no_device = true;
  EXPECT_THAT(run_program(d, quick).error().message, HasSubstr("cuDeviceGet gave OTHER"));
  EXPECT_THAT(run_program({"/nonexistent/libcuda.so.1", 0.1, 0}).error().message, HasSubstr("cannot load"));
}

}  // namespace
}  // namespace outboard::bench
