#include <chrono>
#include <cstring>
#include <thread>
#include <vector>

#include "device/cpu/fixture.hh"

namespace outboard::device::cpu {
namespace {

using namespace std::chrono_literals;
using ::testing::HasSubstr;

class launch_test : public device_test {};

TEST_F(launch_test, vectoradd_gives_the_sums) {
  constexpr unsigned n = 10000;
  const CUfunction f = function(load(), "vectoradd");
  std::vector<float> a(n), b(n), c(n);
  for (unsigned i = 0; i < n; ++i) a[i] = static_cast<float>(i), b[i] = 2.0f * static_cast<float>(i);
  CUdeviceptr da = allocate(4 * n), db = allocate(4 * n), dc = allocate(4 * n);
  table_.cuMemcpyHtoD_v2(da, a.data(), 4 * n);
  table_.cuMemcpyHtoD_v2(db, b.data(), 4 * n);
  unsigned count = n;
  void* parameters[] = {&da, &db, &dc, &count};
  ASSERT_EQ(table_.cuLaunchKernel(f, (n + 255) / 256, 1, 1, 256, 1, 1, 0, nullptr, parameters, nullptr),
            CUDA_SUCCESS);
  ASSERT_EQ(table_.cuMemcpyDtoH_v2(c.data(), dc, 4 * n), CUDA_SUCCESS);
  for (unsigned i = 0; i < n; ++i) ASSERT_EQ(c[i], a[i] + b[i]) << i;
}

TEST_F(launch_test, packed_parameters_work) {
  const CUfunction f = function(load(), "store");
  const CUdeviceptr at = allocate(4);
  struct {
    CUdeviceptr at;
    unsigned value;
  } packed{at, 77};
  std::size_t size = 12;
  void* extra[] = {CU_LAUNCH_PARAM_BUFFER_POINTER, &packed, CU_LAUNCH_PARAM_BUFFER_SIZE, &size,
                   CU_LAUNCH_PARAM_END};
  ASSERT_EQ(table_.cuLaunchKernel(f, 1, 1, 1, 1, 1, 1, 0, nullptr, nullptr, extra), CUDA_SUCCESS);
  EXPECT_EQ(read(at), 77u);
  size = 11;
  EXPECT_EQ(table_.cuLaunchKernel(f, 1, 1, 1, 1, 1, 1, 0, nullptr, nullptr, extra), CUDA_ERROR_INVALID_VALUE);
}

TEST_F(launch_test, bad_shapes_are_refused_at_the_call_and_harm_nothing) {
  const CUfunction f = function(load(), "store");
  CUdeviceptr at = allocate(4);
  unsigned value = 1;
  void* parameters[] = {&at, &value};
  EXPECT_EQ(table_.cuLaunchKernel(f, 1, 1, 1, 2048, 1, 1, 0, nullptr, parameters, nullptr),
            CUDA_ERROR_INVALID_VALUE);
  EXPECT_EQ(table_.cuLaunchKernel(f, 0, 1, 1, 1, 1, 1, 0, nullptr, parameters, nullptr),
            CUDA_ERROR_INVALID_VALUE);
  EXPECT_EQ(table_.cuLaunchKernel(f, 1, 65536, 1, 1, 1, 1, 0, nullptr, parameters, nullptr),
            CUDA_ERROR_INVALID_VALUE);
  EXPECT_EQ(table_.cuLaunchKernel(f, 1, 1, 1, 1, 1, 1, 49153, nullptr, parameters, nullptr),
            CUDA_ERROR_INVALID_VALUE);
  EXPECT_EQ(table_.cuLaunchKernel(f, 1, 1, 1, 1, 1, 1, 0, nullptr, nullptr, nullptr),
            CUDA_ERROR_INVALID_VALUE);
  EXPECT_EQ(table_.cuCtxSynchronize(), CUDA_SUCCESS);
}

TEST_F(launch_test, opt_in_shared_memory_needs_the_attribute) {
  const CUfunction f = function(load(), "trapping");
  int most = 0;
  table_.cuDeviceGetAttribute(&most, CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN, 0);
  EXPECT_EQ(table_.cuFuncSetAttribute(f, CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES, most + 1),
            CUDA_ERROR_INVALID_VALUE);
  EXPECT_EQ(table_.cuFuncSetAttribute(f, CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES, most),
            CUDA_SUCCESS);
  const CUfunction g = function(load(), "increment");
  EXPECT_EQ(table_.cuFuncSetAttribute(g, CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES, most),
            CUDA_SUCCESS);
  CUdeviceptr at = allocate(4);
  void* parameters[] = {&at};
  EXPECT_EQ(
      table_.cuLaunchKernel(g, 1, 1, 1, 1, 1, 1, static_cast<unsigned>(most), nullptr, parameters, nullptr),
      CUDA_SUCCESS);
  EXPECT_EQ(read(at), 1u);
}

TEST_F(launch_test, illegal_address_sticks_until_reset) {
  const CUfunction f = function(load(), "store");
  const CUdeviceptr good = allocate(4);
  ASSERT_EQ(launch(f, nullptr, CUdeviceptr{0x40}, 1u), CUDA_SUCCESS) << "the call itself cannot know";
  EXPECT_EQ(table_.cuCtxSynchronize(), CUDA_ERROR_ILLEGAL_ADDRESS);
  EXPECT_EQ(launch(f, nullptr, good, 1u), CUDA_ERROR_ILLEGAL_ADDRESS);
  CUdeviceptr at = 0;
  EXPECT_EQ(table_.cuMemAlloc_v2(&at, 4), CUDA_ERROR_ILLEGAL_ADDRESS);
  EXPECT_EQ(table_.cuStreamSynchronize(nullptr), CUDA_ERROR_ILLEGAL_ADDRESS);
  EXPECT_EQ(table_.cuDevicePrimaryCtxReset_v2(0), CUDA_SUCCESS);
  EXPECT_EQ(table_.cuMemAlloc_v2(&at, 4), CUDA_ERROR_CONTEXT_IS_DESTROYED);
  CUcontext again = nullptr;
  EXPECT_EQ(table_.cuDevicePrimaryCtxRetain(&again, 0), CUDA_SUCCESS);
  EXPECT_EQ(again, context_) << "the handle is stable";
  EXPECT_EQ(table_.cuMemAlloc_v2(&at, 4), CUDA_SUCCESS);
  EXPECT_EQ(launch(function(load(), "store"), nullptr, at, 9u), CUDA_SUCCESS);
  EXPECT_EQ(read(at), 9u);
}

TEST_F(launch_test, each_fault_has_its_code) {
  const CUfunction f = function(load(), "store");
  ASSERT_EQ(launch(f, nullptr, allocate(8) + 2, 1u), CUDA_SUCCESS);
  EXPECT_EQ(table_.cuCtxSynchronize(), CUDA_ERROR_MISALIGNED_ADDRESS);
  table_.cuDevicePrimaryCtxReset_v2(0);
  table_.cuDevicePrimaryCtxRetain(&context_, 0);
  ASSERT_EQ(launch(function(load(), "trapping"), nullptr), CUDA_SUCCESS);
  EXPECT_EQ(table_.cuCtxSynchronize(), CUDA_ERROR_LAUNCH_FAILED);
}

TEST_F(launch_test, errors_stay_in_their_context) {
  const CUfunction f = function(load(), "store");
  const CUdeviceptr good = allocate(4);
  CUcontext other = nullptr;
  ASSERT_EQ(table_.cuCtxCreate_v2(&other, 0, 0), CUDA_SUCCESS);
  ASSERT_EQ(launch(function(load(), "trapping"), nullptr), CUDA_SUCCESS);
  EXPECT_EQ(table_.cuCtxSynchronize(), CUDA_ERROR_LAUNCH_FAILED);
  EXPECT_EQ(table_.cuCtxDestroy_v2(other), CUDA_SUCCESS);
  CUcontext seen = nullptr;
  table_.cuCtxGetCurrent(&seen);
  EXPECT_EQ(seen, context_);
  EXPECT_EQ(launch(f, nullptr, good, 3u), CUDA_SUCCESS);
  EXPECT_EQ(read(good), 3u);
}

TEST_F(launch_test, work_behind_a_fault_is_dropped) {
  const CUmodule m = load();
  const CUdeviceptr at = allocate(4);
  void* pinned = nullptr;
  table_.cuMemHostAlloc(&pinned, 4, 0);
  const CUfunction increment =
      function(m, "increment");  // may also fail, because the fault may be known at once
  launch(function(m, "trapping"), nullptr);
  launch(increment, nullptr, at);
  table_.cuMemcpyDtoHAsync_v2(pinned, at, 4, nullptr);
  EXPECT_EQ(table_.cuCtxSynchronize(), CUDA_ERROR_LAUNCH_FAILED);
  EXPECT_EQ(*static_cast<unsigned*>(pinned), 0u);
}

TEST_F(launch_test, kernels_of_a_library_launch_by_their_own_handle) {
  CUlibrary library = nullptr;
  ASSERT_EQ(table_.cuLibraryLoadData(&library, test_ptx, nullptr, nullptr, 0, nullptr, nullptr, 0),
            CUDA_SUCCESS);
  CUkernel kernel = nullptr, same = nullptr;
  ASSERT_EQ(table_.cuLibraryGetKernel(&kernel, library, "increment"), CUDA_SUCCESS);
  ASSERT_EQ(table_.cuLibraryGetKernel(&same, library, "increment"), CUDA_SUCCESS);
  EXPECT_EQ(kernel, same);
  EXPECT_EQ(table_.cuLibraryGetKernel(&same, library, "missing"), CUDA_ERROR_NOT_FOUND);
  CUdeviceptr counter = 0;
  std::size_t size = 0;
  ASSERT_EQ(table_.cuLibraryGetGlobal(&counter, &size, library, "counter"), CUDA_SUCCESS);
  EXPECT_EQ(size, 4u);
  EXPECT_EQ(read(counter), 5u) << "the initial value";
  ASSERT_EQ(launch(reinterpret_cast<CUfunction>(kernel), nullptr, counter), CUDA_SUCCESS);
  CUfunction f = nullptr;
  ASSERT_EQ(table_.cuKernelGetFunction(&f, kernel), CUDA_SUCCESS);
  ASSERT_EQ(launch(f, nullptr, counter), CUDA_SUCCESS);
  EXPECT_EQ(read(counter), 7u);
  std::size_t offset = 99;
  EXPECT_EQ(table_.cuKernelGetParamInfo(kernel, 0, &offset, &size), CUDA_SUCCESS);
  EXPECT_EQ(offset, 0u);
  EXPECT_EQ(size, 8u);
  EXPECT_EQ(table_.cuKernelGetParamInfo(kernel, 1, &offset, &size), CUDA_ERROR_INVALID_VALUE);
  EXPECT_EQ(table_.cuLibraryUnload(library), CUDA_SUCCESS);
  EXPECT_EQ(launch(f, nullptr, counter), CUDA_ERROR_INVALID_HANDLE);
  EXPECT_EQ(table_.cuLibraryUnload(library), CUDA_ERROR_INVALID_HANDLE);
}

TEST_F(launch_test, modules_enumerate_their_functions) {
  const CUmodule m = load();
  unsigned count = 0;
  ASSERT_EQ(table_.cuModuleGetFunctionCount(&count, m), CUDA_SUCCESS);
  ASSERT_EQ(count, 6u);
  std::vector<CUfunction> all(count);
  ASSERT_EQ(table_.cuModuleEnumerateFunctions(all.data(), count, m), CUDA_SUCCESS);
  EXPECT_THAT(all, ::testing::Contains(function(m, "spin_until")));
}

TEST_F(launch_test, images_without_ptx_have_their_own_error) {
  CUmodule m = nullptr;
  EXPECT_EQ(table_.cuModuleLoadData(&m, "\177ELF and so on"), CUDA_ERROR_NO_BINARY_FOR_GPU);
  EXPECT_EQ(m, nullptr);
  EXPECT_EQ(table_.cuModuleLoadData(&m, nullptr), CUDA_ERROR_INVALID_VALUE);
}

TEST_F(launch_test, bad_ptx_is_explained_in_the_log) {
  CUmodule m = nullptr;
  char log[256] = {};
  CUjit_option names[] = {CU_JIT_ERROR_LOG_BUFFER, CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES};
  void* values[] = {log, reinterpret_cast<void*>(sizeof log)};
  const char* text =
      ".version 8.0\n.target sm_75\n.address_size 64\n.visible .entry k() { frobnicate; ret; }\n";
  EXPECT_EQ(table_.cuModuleLoadDataEx(&m, text, 2, names, values), CUDA_ERROR_INVALID_PTX);
  EXPECT_THAT(log, HasSubstr("frobnicate"));
  EXPECT_EQ(reinterpret_cast<std::size_t>(values[1]), std::strlen(log));
}

TEST_F(launch_test, two_texts_are_linked_into_one_image) {
  const char* first =
      ".version 8.0\n.target sm_75\n.address_size 64\n.extern .func (.param .b32 r) answer();\n"
      ".visible .entry ask(.param .u64 at) {\n .reg .b32 %r<2>; .reg .b64 %rd<2>;\n ld.param.u64 %rd1, "
      "[at];\n"
      " { .param .b32 out; call.uni (out), answer, (); ld.param.b32 %r1, [out]; }\n st.global.u32 [%rd1], "
      "%r1;\n ret;\n}\n";
  const char* second =
      ".version 8.0\n.target sm_75\n.address_size 64\n.visible .func (.param .b32 r) answer() {\n"
      " .reg .b32 %r<2>;\n mov.u32 %r1, 42;\n st.param.b32 [r], %r1;\n ret;\n}\n";
  char log[512] = {};
  CUjit_option names[] = {CU_JIT_ERROR_LOG_BUFFER, CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES};
  void* values[] = {log, reinterpret_cast<void*>(sizeof log)};
  const auto add = [&](CUlinkState s, const char* text) {
    return table_.cuLinkAddData_v2(s, CU_JIT_INPUT_PTX, const_cast<char*>(text), std::strlen(text) + 1,
                                   "input", 0, nullptr, nullptr);
  };
  CUlinkState state = nullptr;
  void* image = nullptr;
  std::size_t size = 0;
  ASSERT_EQ(table_.cuLinkCreate_v2(2, names, values, &state), CUDA_SUCCESS);
  ASSERT_EQ(add(state, first), CUDA_SUCCESS) << log;
  EXPECT_NE(table_.cuLinkComplete(state, &image, &size), CUDA_SUCCESS);
  EXPECT_THAT(log, HasSubstr("answer")) << "the missing symbol is named";
  ASSERT_EQ(add(state, second), CUDA_SUCCESS) << log;
  ASSERT_EQ(table_.cuLinkComplete(state, &image, &size), CUDA_SUCCESS) << log;
  const std::vector<std::byte> copy(static_cast<std::byte*>(image), static_cast<std::byte*>(image) + size);
  EXPECT_EQ(table_.cuLinkDestroy(state), CUDA_SUCCESS);
  CUmodule m = nullptr;
  ASSERT_EQ(table_.cuModuleLoadData(&m, copy.data()), CUDA_SUCCESS);
  const CUdeviceptr at = allocate(4);
  ASSERT_EQ(launch(function(m, "ask"), nullptr, at), CUDA_SUCCESS);
  EXPECT_EQ(read(at), 42u);
}

TEST_F(launch_test, freed_memory_is_no_longer_legal) {
  const CUfunction f = function(load(), "store");
  const CUdeviceptr at = allocate(8 << 20);
  ASSERT_EQ(launch(f, nullptr, at, 1u), CUDA_SUCCESS);
  ASSERT_EQ(table_.cuMemFree_v2(at), CUDA_SUCCESS);
  ASSERT_EQ(launch(f, nullptr, at, 1u), CUDA_SUCCESS);
  EXPECT_EQ(table_.cuCtxSynchronize(), CUDA_ERROR_ILLEGAL_ADDRESS);
}

TEST_F(launch_test, occupancy_gives_a_legal_cooperative_grid) {
  const CUfunction f = function(load(), "add_one_atomic");
  int blocks = 0, cores = 0;
  ASSERT_EQ(table_.cuOccupancyMaxActiveBlocksPerMultiprocessor(&blocks, f, 128, 0), CUDA_SUCCESS);
  ASSERT_GT(blocks, 0);
  table_.cuDeviceGetAttribute(&cores, CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT, 0);
  CUdeviceptr at = allocate(4);
  void* parameters[] = {&at};
  const auto grid = static_cast<unsigned>(blocks * cores);
  EXPECT_EQ(table_.cuLaunchCooperativeKernel(f, grid, 1, 1, 128, 1, 1, 0, nullptr, parameters), CUDA_SUCCESS);
  EXPECT_EQ(read(at), grid * 128);
  EXPECT_EQ(table_.cuLaunchCooperativeKernel(f, 1u << 30, 1, 1, 128, 1, 1, 0, nullptr, parameters),
            CUDA_ERROR_COOPERATIVE_LAUNCH_TOO_LARGE);
}

TEST_F(launch_test, launch_ex_takes_hints_and_records_events) {
  const CUfunction f = function(load(), "store");
  CUdeviceptr at = allocate(4);
  unsigned value = 6;
  void* parameters[] = {&at, &value};
  CUevent event = nullptr;
  table_.cuEventCreate(&event, CU_EVENT_DISABLE_TIMING);
  CUlaunchAttribute attributes[2] = {};
  attributes[0].id = CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_STREAM_SERIALIZATION;
  attributes[0].value.programmaticStreamSerializationAllowed = 1;
  attributes[1].id = CU_LAUNCH_ATTRIBUTE_LAUNCH_COMPLETION_EVENT;
  attributes[1].value.launchCompletionEvent.event = event;
  CUlaunchConfig config{};
  config.gridDimX = config.gridDimY = config.gridDimZ = 1;
  config.blockDimX = config.blockDimY = config.blockDimZ = 1;
  config.attrs = attributes;
  config.numAttrs = 2;
  ASSERT_EQ(table_.cuLaunchKernelEx(&config, f, parameters, nullptr), CUDA_SUCCESS);
  EXPECT_EQ(table_.cuEventSynchronize(event), CUDA_SUCCESS);
  EXPECT_EQ(read(at), 6u);
  attributes[0].id = CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION;
  attributes[0].value.clusterDim = {2, 1, 1};
  EXPECT_EQ(table_.cuLaunchKernelEx(&config, f, parameters, nullptr), CUDA_ERROR_INVALID_CLUSTER_SIZE);
}

class timeout_test : public device_test {
 protected:
  timeout_test() : device_test({.kernel_timeout = 100ms}) {}
};

TEST_F(timeout_test, endless_kernel_ends_with_its_code) {
  const CUfunction f = function(load(), "spin_until");
  const auto start = std::chrono::steady_clock::now();
  ASSERT_EQ(launch(f, nullptr, allocate(4)), CUDA_SUCCESS);
  EXPECT_EQ(table_.cuCtxSynchronize(), CUDA_ERROR_LAUNCH_TIMEOUT);
  EXPECT_LT(std::chrono::steady_clock::now() - start, 5s);
}

TEST(closing_test, a_device_with_a_running_kernel_closes) {
  struct closing : device_test {
    using device_test::SetUp;
    void TestBody() override {
      SetUp();
      ASSERT_EQ(launch(function(load(), "spin_until"), nullptr, allocate(4)), CUDA_SUCCESS);
    }
  };
  closing run;
  run.TestBody();
}

}  // namespace
}  // namespace outboard::device::cpu
