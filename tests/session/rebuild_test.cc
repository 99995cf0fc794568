// A session's worker is killed while the program is idle. Its records are replayed into a fresh worker, its
// memory is restored, and the program continues with the handles and addresses that it had.
#include <gtest/gtest.h>
#include <sys/mman.h>

#include <algorithm>
#include <cstring>

#include "frontend/cuda/ends.hh"
#include "frontend/cuda/process.hh"
#include "frontend/cuda/remote.hh"
#include "server.hh"

namespace outboard::tests {
namespace {

using api::opcode;
namespace cuda = frontend::cuda;
namespace ends = frontend::cuda::ends;
using frontend::process;

constexpr char doubling[] = R"(
.version 7.0
.target sm_70
.address_size 64
.visible .entry twice(.param .u64 data, .param .u32 n) {
  .reg .pred %p; .reg .b32 %r<6>; .reg .b64 %d<4>;
  ld.param.u64 %d1, [data]; ld.param.u32 %r1, [n];
  mov.u32 %r2, %ctaid.x; mov.u32 %r3, %ntid.x; mov.u32 %r4, %tid.x; mad.lo.u32 %r5, %r2, %r3, %r4;
  setp.ge.u32 %p, %r5, %r1; @%p bra done;
  mul.wide.u32 %d2, %r5, 4; add.u64 %d3, %d1, %d2;
  ld.global.u32 %r2, [%d3]; add.u32 %r2, %r2, %r2; st.global.u32 [%d3], %r2;
done: ret;
}
)";

struct program {
  CUcontext context = nullptr;
  CUmodule module = nullptr;
  CUfunction twice = nullptr;
  CUdeviceptr small = 0, large = 0;
  CUstream stream = nullptr;
  CUevent event = nullptr;
  static constexpr unsigned count = 1000;
  static constexpr std::size_t large_bytes = 5u << 20;

  void start() {
    ASSERT_EQ(ends::cuInit(0), CUDA_SUCCESS);
    ASSERT_EQ(ends::cuDevicePrimaryCtxRetain(&context, 0), CUDA_SUCCESS);
    ASSERT_EQ(ends::cuCtxSetCurrent(context), CUDA_SUCCESS);
    ASSERT_EQ(ends::cuModuleLoadData(&module, doubling), CUDA_SUCCESS);
    ASSERT_EQ(ends::cuModuleGetFunction(&twice, module, "twice"), CUDA_SUCCESS);
    ASSERT_EQ(ends::cuMemAlloc_v2(&small, count * 4), CUDA_SUCCESS);
    ASSERT_EQ(ends::cuMemAlloc_v2(&large, large_bytes), CUDA_SUCCESS);
    ASSERT_EQ(cuda::remote<opcode::cuStreamCreate>(&stream, 0u), CUDA_SUCCESS);
    ASSERT_EQ(cuda::remote<opcode::cuEventCreate>(&event, 0u), CUDA_SUCCESS);
    std::vector<unsigned> numbers(count);
    for (unsigned i = 0; i < count; ++i) numbers[i] = i;
    ASSERT_EQ(ends::cuMemcpyHtoD_v2(small, numbers.data(), count * 4), CUDA_SUCCESS);
    ASSERT_EQ(cuda::remote<opcode::cuMemsetD32_v2>(large, 77u, large_bytes / 4), CUDA_SUCCESS);
  }

  void launch() {
    unsigned n = count;
    void* arguments[] = {&small, &n};
    ASSERT_EQ(ends::cuLaunchKernel(twice, 4, 1, 1, 256, 1, 1, 0, stream, arguments, nullptr), CUDA_SUCCESS);
    ASSERT_EQ(cuda::remote<opcode::cuEventRecord>(event, stream), CUDA_SUCCESS);
    ASSERT_EQ(cuda::remote<opcode::cuEventSynchronize>(event), CUDA_SUCCESS);
  }

  std::vector<unsigned> read(CUdeviceptr from, std::size_t bytes) {
    std::vector<unsigned> numbers(bytes / 4);
    EXPECT_EQ(ends::cuMemcpyDtoH_v2(numbers.data(), from, bytes), CUDA_SUCCESS);
    return numbers;
  }
};

/// The mock device computes nothing, so only handles, addresses and contents can be compared there.
void lose_worker_and_go_on(const server& s, bool computes) {
  boot(s);
  program p;
  p.start();
  if (testing::Test::HasFatalFailure()) return;
  if (computes) p.launch();
  std::vector<std::byte> records;
  ASSERT_EQ(process::instance().connection.export_records(records), CUDA_SUCCESS);
  const std::vector<unsigned> small = p.read(p.small, program::count * 4),
                              large = p.read(p.large, program::large_bytes);
  EXPECT_EQ(small[7], computes ? 14u : 7u);
  EXPECT_EQ(large[1000], 77u);

  ASSERT_TRUE(s.kill_worker());

  ASSERT_EQ(process::instance().connection.rebuild(records), CUDA_SUCCESS);
  ASSERT_EQ(ends::cuMemcpyHtoD_v2(p.small, small.data(), small.size() * 4), CUDA_SUCCESS);
  ASSERT_EQ(ends::cuMemcpyHtoD_v2(p.large, large.data(), large.size() * 4), CUDA_SUCCESS);
  if (computes) p.launch();
  EXPECT_EQ(p.read(p.small, program::count * 4)[7], computes ? 28u : 7u);
  EXPECT_EQ(p.read(p.large, program::large_bytes)[1234], 77u);
  EXPECT_EQ(ends::cuMemFree_v2(p.large), CUDA_SUCCESS);
  EXPECT_EQ(ends::cuMemFree_v2(p.small), CUDA_SUCCESS);
  EXPECT_EQ(ends::cuModuleUnload(p.module), CUDA_SUCCESS);
}

TEST(rebuild, a_program_continues_after_its_worker_was_killed_on_the_cpu_device) {
  const server s("cpu");
  EXPECT_TRUE(in_fresh_process([&] { lose_worker_and_go_on(s, true); }));
}

TEST(rebuild, handles_addresses_and_contents_survive_on_the_mock) {
  const server s("mock");
  EXPECT_TRUE(in_fresh_process([&] { lose_worker_and_go_on(s, false); }));
}

/// Handles and addresses of every kind of memory keep their meaning; host memory keeps its bytes by itself.
TEST(rebuild, memory_of_every_kind_survives) {
  const server s("cpu");
  EXPECT_TRUE(in_fresh_process([&] {
    boot(s);
    program p;
    p.start();
    constexpr std::size_t granule = 2u << 20;
    CUmemoryPool pool = nullptr, standard = nullptr;
    CUmemPoolProps how{};
    how.allocType = CU_MEM_ALLOCATION_TYPE_PINNED;
    how.location.type = CU_MEM_LOCATION_TYPE_DEVICE;
    cuuint64_t keep = 12345678, kept = 0;
    CUdeviceptr pooled = 0, range = 0, managed = 0, there = 0;
    CUmemAllocationProp prop{};
    prop.type = CU_MEM_ALLOCATION_TYPE_PINNED;
    prop.location.type = CU_MEM_LOCATION_TYPE_DEVICE;
    CUmemAccessDesc access{prop.location, CU_MEM_ACCESS_FLAGS_PROT_READWRITE};
    CUmemGenericAllocationHandle block = 0;
    void* pinned = nullptr;
    // No worker uses this address: a rebuilt one must find it free, and heaps of sanitizers are alike.
    void* quiet = ::mmap(reinterpret_cast<void*>(0x5520'0000'0000), 4096, PROT_READ | PROT_WRITE,
                         MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0);
    ASSERT_NE(quiet, MAP_FAILED);
    auto* own = static_cast<unsigned*>(quiet);
    std::fill_n(own, 1000, 5u);
    ASSERT_EQ(ends::cuDeviceGetDefaultMemPool(&standard, 0), CUDA_SUCCESS);
    ASSERT_EQ(ends::cuMemPoolSetAttribute(standard, CU_MEMPOOL_ATTR_RELEASE_THRESHOLD, &keep), CUDA_SUCCESS);
    ASSERT_EQ(ends::cuMemPoolCreate(&pool, &how), CUDA_SUCCESS);
    ASSERT_EQ(ends::cuMemAllocFromPoolAsync(&pooled, 4000, pool, nullptr), CUDA_SUCCESS);
    ASSERT_EQ(ends::cuMemAddressReserve(&range, 4 * granule, 0, 0, 0), CUDA_SUCCESS);
    ASSERT_EQ(ends::cuMemCreate(&block, granule, &prop, 0), CUDA_SUCCESS);
    ASSERT_EQ(ends::cuMemMap(range + granule, granule, 0, block, 0), CUDA_SUCCESS);
    ASSERT_EQ(ends::cuMemSetAccess(range + granule, granule, &access, 1), CUDA_SUCCESS);
    ASSERT_EQ(ends::cuMemAllocManaged(&managed, 4000, CU_MEM_ATTACH_GLOBAL), CUDA_SUCCESS);
    ASSERT_EQ(ends::cuMemHostAlloc(&pinned, 4000, 0), CUDA_SUCCESS);
    ASSERT_EQ(ends::cuMemHostRegister_v2(own, 4000, CU_MEMHOSTREGISTER_DEVICEMAP), CUDA_SUCCESS);
    ASSERT_EQ(ends::cuMemHostGetDevicePointer_v2(&there, own, 0), CUDA_SUCCESS);
    const auto twice = [&](CUdeviceptr data) {
      unsigned n = 1000;
      void* arguments[] = {&data, &n};
      ASSERT_EQ(ends::cuLaunchKernel(p.twice, 4, 1, 1, 256, 1, 1, 0, nullptr, arguments, nullptr),
                CUDA_SUCCESS);
      ASSERT_EQ(ends::cuCtxSynchronize(), CUDA_SUCCESS);
    };
    auto* words = reinterpret_cast<unsigned*>(managed);
    auto* page_locked = static_cast<unsigned*>(pinned);
    words[0] = 21, words[999] = 50, page_locked[3] = 4;
    twice(managed), twice(there), twice(reinterpret_cast<CUdeviceptr>(pinned));
    EXPECT_EQ(words[0], 42u);
    EXPECT_EQ(own[999], 10u);
    EXPECT_EQ(page_locked[3], 8u);

    std::vector<std::byte> records;
    ASSERT_EQ(process::instance().connection.export_records(records), CUDA_SUCCESS);
    ASSERT_TRUE(s.kill_worker());
    ASSERT_EQ(process::instance().connection.rebuild(records), CUDA_SUCCESS);

    twice(managed), twice(there), twice(reinterpret_cast<CUdeviceptr>(pinned));
    EXPECT_EQ(words[0], 84u);
    EXPECT_EQ(words[999], 200u);
    EXPECT_EQ(own[0], 20u);
    EXPECT_EQ(page_locked[3], 16u);
    ASSERT_EQ(cuda::remote<opcode::cuMemsetD32_v2>(range + granule, 6u, granule / 4), CUDA_SUCCESS);
    twice(range + granule);
    EXPECT_EQ(p.read(range + granule, 4000)[999], 12u);
    ASSERT_EQ(cuda::remote<opcode::cuMemsetD32_v2>(pooled, 8u, std::size_t{1000}), CUDA_SUCCESS);
    EXPECT_EQ(p.read(pooled, 4000)[999], 8u);
    ASSERT_EQ(ends::cuMemPoolGetAttribute(standard, CU_MEMPOOL_ATTR_RELEASE_THRESHOLD, &kept), CUDA_SUCCESS);
    EXPECT_EQ(kept, keep);
    EXPECT_EQ(ends::cuMemFreeAsync(pooled, nullptr), CUDA_SUCCESS);
    EXPECT_EQ(cuda::remote<opcode::cuMemPoolDestroy>(pool), CUDA_SUCCESS);
    EXPECT_EQ(ends::cuMemUnmap(range + granule, granule), CUDA_SUCCESS);
    EXPECT_EQ(ends::cuMemRelease(block), CUDA_SUCCESS);
    EXPECT_EQ(ends::cuMemAddressFree(range, 4 * granule), CUDA_SUCCESS);
    EXPECT_EQ(ends::cuMemFree_v2(managed), CUDA_SUCCESS);
    EXPECT_EQ(ends::cuMemHostUnregister(own), CUDA_SUCCESS);
    EXPECT_EQ(ends::cuMemFreeHost(pinned), CUDA_SUCCESS);
  }));
}

/// Graphs are recorded as they are, built or captured, with the nodes' handles and the program's own memory.
TEST(rebuild, graphs_are_rebuilt) {
  const server s("cpu");
  EXPECT_TRUE(in_fresh_process([&] {
    boot(s);
    program p;
    p.start();
    unsigned n = program::count;
    void* arguments[] = {&p.small, &n};
    CUgraph made = nullptr, captured = nullptr;
    CUgraphNode doubling_node = nullptr, fill_node = nullptr;
    CUgraphExec made_exec = nullptr, captured_exec = nullptr;
    ASSERT_EQ(ends::cuGraphCreate(&made, 0), CUDA_SUCCESS);
    CUDA_MEMSET_NODE_PARAMS fill{p.small, 0, 5, 4, program::count, 1};
    CUDA_KERNEL_NODE_PARAMS_v2 kernel{};
    kernel.func = p.twice, kernel.gridDimX = 4, kernel.blockDimX = 256;
    kernel.gridDimY = kernel.gridDimZ = kernel.blockDimY = kernel.blockDimZ = 1;
    kernel.kernelParams = arguments;
    ASSERT_EQ(ends::cuGraphAddMemsetNode(&fill_node, made, nullptr, 0, &fill, p.context), CUDA_SUCCESS);
    ASSERT_EQ(ends::cuGraphAddKernelNode_v2(&doubling_node, made, &fill_node, 1, &kernel), CUDA_SUCCESS);
    ASSERT_EQ(ends::cuGraphInstantiateWithFlags(&made_exec, made, 0), CUDA_SUCCESS);
    static std::vector<unsigned> numbers(program::count, 7);
    ASSERT_EQ(ends::cuStreamBeginCapture_v2(p.stream, CU_STREAM_CAPTURE_MODE_GLOBAL), CUDA_SUCCESS);
    ASSERT_EQ(ends::cuMemcpyHtoDAsync_v2(p.small, numbers.data(), program::count * 4, p.stream),
              CUDA_SUCCESS);
    ASSERT_EQ(ends::cuLaunchKernel(p.twice, 4, 1, 1, 256, 1, 1, 0, p.stream, arguments, nullptr),
              CUDA_SUCCESS);
    ASSERT_EQ(ends::cuStreamEndCapture(p.stream, &captured), CUDA_SUCCESS);
    ASSERT_EQ(ends::cuGraphInstantiateWithFlags(&captured_exec, captured, 0), CUDA_SUCCESS);

    std::vector<std::byte> records;
    ASSERT_EQ(process::instance().connection.export_records(records), CUDA_SUCCESS);
    ASSERT_TRUE(s.kill_worker());
    ASSERT_EQ(process::instance().connection.rebuild(records), CUDA_SUCCESS);

    ASSERT_EQ(ends::cuGraphLaunch(made_exec, p.stream), CUDA_SUCCESS);
    ASSERT_EQ(cuda::remote<opcode::cuStreamSynchronize>(p.stream), CUDA_SUCCESS);
    EXPECT_EQ(p.read(p.small, program::count * 4)[999], 10u);
    numbers.assign(program::count, 8);
    ASSERT_EQ(ends::cuGraphLaunch(captured_exec, p.stream), CUDA_SUCCESS);
    ASSERT_EQ(cuda::remote<opcode::cuStreamSynchronize>(p.stream), CUDA_SUCCESS);
    EXPECT_EQ(p.read(p.small, program::count * 4)[999], 16u);
    // The program's handles still name the nodes.
    CUgraphNodeType type = CU_GRAPH_NODE_TYPE_EMPTY;
    ASSERT_EQ(ends::cuGraphNodeGetType(doubling_node, &type), CUDA_SUCCESS);
    EXPECT_EQ(type, CU_GRAPH_NODE_TYPE_KERNEL);
    std::size_t edges = 0;
    ASSERT_EQ(ends::cuGraphGetEdges(made, nullptr, nullptr, &edges), CUDA_SUCCESS);
    EXPECT_EQ(edges, 1u);
    fill.value = 6;
    ASSERT_EQ(ends::cuGraphExecMemsetNodeSetParams(made_exec, fill_node, &fill, p.context), CUDA_SUCCESS);
    ASSERT_EQ(ends::cuGraphLaunch(made_exec, p.stream), CUDA_SUCCESS);
    ASSERT_EQ(cuda::remote<opcode::cuStreamSynchronize>(p.stream), CUDA_SUCCESS);
    EXPECT_EQ(p.read(p.small, program::count * 4)[999], 12u);
    // The executable graph now differs from its graph, which cannot be recorded.
    EXPECT_EQ(process::instance().connection.export_records(records), CUDA_ERROR_NOT_SUPPORTED);
    EXPECT_EQ(ends::cuGraphExecDestroy(made_exec), CUDA_SUCCESS);
    EXPECT_EQ(process::instance().connection.export_records(records), CUDA_SUCCESS);
  }));
}

TEST(rebuild, without_a_rebuild_every_call_fails_at_once) {
  const server s("cpu");
  EXPECT_TRUE(in_fresh_process([&] {
    boot(s);
    program p;
    p.start();
    ASSERT_TRUE(s.kill_worker());
    unsigned number = 0;
    EXPECT_EQ(ends::cuMemcpyDtoH_v2(&number, p.small, 4), CUDA_ERROR_DEVICE_UNAVAILABLE);
    EXPECT_EQ(cuda::remote<opcode::cuStreamSynchronize>(p.stream), CUDA_ERROR_DEVICE_UNAVAILABLE);
  }));
}

}  // namespace
}  // namespace outboard::tests
