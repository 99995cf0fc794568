// Graphs and captures on the device itself: what the entries refuse, what launches keep, what lives how long.
#include <sys/mman.h>

#include <atomic>
#include <thread>

#include "device/cpu/fixture.hh"

namespace outboard::device::cpu {
namespace {

class graphs : public device_test {
 protected:
  void SetUp() override {
    device_test::SetUp();
    module_ = load();
    ASSERT_EQ(table_.cuStreamCreate(&stream_, CU_STREAM_NON_BLOCKING), CUDA_SUCCESS);
    at_ = allocate(4);
    ASSERT_EQ(table_.cuMemsetD32_v2(at_, 0, 1), CUDA_SUCCESS);
    ASSERT_EQ(table_.cuCtxSynchronize(), CUDA_SUCCESS);
  }

  CUgraphExec instantiated(CUgraph graph) {
    CUgraphExec exec = nullptr;
    EXPECT_EQ(table_.cuGraphInstantiateWithFlags(&exec, graph, 0), CUDA_SUCCESS);
    return exec;
  }
  void run(CUgraphExec exec) {
    ASSERT_EQ(table_.cuGraphLaunch(exec, stream_), CUDA_SUCCESS);
    ASSERT_EQ(table_.cuStreamSynchronize(stream_), CUDA_SUCCESS);
  }
  CUgraphNode add_increment(CUgraph graph, std::vector<CUgraphNode> before) {
    CUdeviceptr at = at_;
    void* parameters[] = {&at};
    CUDA_KERNEL_NODE_PARAMS_v2 p{};
    p.func = function(module_, "increment");
    p.gridDimX = p.gridDimY = p.gridDimZ = p.blockDimX = p.blockDimY = p.blockDimZ = 1;
    p.kernelParams = parameters;
    CUgraphNode node = nullptr;
    EXPECT_EQ(table_.cuGraphAddKernelNode_v2(&node, graph, before.data(), before.size(), &p), CUDA_SUCCESS);
    return node;
  }

  CUmodule module_ = nullptr;
  CUstream stream_ = nullptr;
  CUdeviceptr at_ = 0;
};

TEST_F(graphs, nothing_runs_while_it_is_captured) {
  ASSERT_EQ(table_.cuStreamBeginCapture_v2(stream_, CU_STREAM_CAPTURE_MODE_THREAD_LOCAL), CUDA_SUCCESS);
  for (int i = 0; i < 3; ++i) EXPECT_EQ(launch(function(module_, "increment"), stream_, at_), CUDA_SUCCESS);
  CUgraph graph = nullptr;
  ASSERT_EQ(table_.cuStreamEndCapture(stream_, &graph), CUDA_SUCCESS);
  EXPECT_EQ(read(at_), 0u);
  CUgraphExec exec = instantiated(graph);
  EXPECT_EQ(table_.cuGraphDestroy(graph), CUDA_SUCCESS);
  run(exec), run(exec);
  EXPECT_EQ(read(at_), 6u);
  EXPECT_EQ(table_.cuGraphExecDestroy(exec), CUDA_SUCCESS);
  EXPECT_EQ(table_.cuGraphLaunch(exec, stream_), CUDA_ERROR_INVALID_VALUE);
}

TEST_F(graphs, edges_that_make_a_circle_are_refused) {
  CUgraph graph = nullptr;
  ASSERT_EQ(table_.cuGraphCreate(&graph, 0), CUDA_SUCCESS);
  CUgraphNode a = add_increment(graph, {}), b = add_increment(graph, {a});
  ASSERT_EQ(table_.cuGraphAddDependencies(graph, &b, &a, 1), CUDA_SUCCESS);
  CUgraphExec exec = nullptr;
  EXPECT_EQ(table_.cuGraphInstantiateWithFlags(&exec, graph, 0), CUDA_ERROR_INVALID_VALUE);
  EXPECT_EQ(table_.cuGraphRemoveDependencies(graph, &b, &a, 1), CUDA_SUCCESS);
  EXPECT_EQ(table_.cuGraphRemoveDependencies(graph, &b, &a, 1), CUDA_ERROR_INVALID_VALUE);
  run(instantiated(graph));
  EXPECT_EQ(read(at_), 2u);
}

TEST_F(graphs, nodes_die_with_their_graph) {
  CUgraph graph = nullptr, other = nullptr;
  ASSERT_EQ(table_.cuGraphCreate(&graph, 0), CUDA_SUCCESS);
  ASSERT_EQ(table_.cuGraphCreate(&other, 0), CUDA_SUCCESS);
  CUgraphNode node = add_increment(graph, {}), empty = nullptr;
  EXPECT_EQ(table_.cuGraphAddEmptyNode(&empty, other, &node, 1), CUDA_ERROR_INVALID_VALUE);
  EXPECT_EQ(table_.cuGraphDestroy(graph), CUDA_SUCCESS);
  CUgraphNodeType type{};
  EXPECT_EQ(table_.cuGraphNodeGetType(node, &type), CUDA_ERROR_INVALID_VALUE);
  EXPECT_EQ(table_.cuGraphDestroy(graph), CUDA_ERROR_INVALID_VALUE);
}

TEST_F(graphs, a_launch_under_way_keeps_the_parameters_it_began_with) {
  CUgraph graph = nullptr;
  ASSERT_EQ(table_.cuGraphCreate(&graph, 0), CUDA_SUCCESS);
  std::atomic<bool> go{false};
  const auto wait = [](void* data) {
    while (!*static_cast<std::atomic<bool>*>(data)) std::this_thread::yield();
  };
  const CUDA_HOST_NODE_PARAMS_v1 gate{wait, &go};
  CUgraphNode first = nullptr, fill = nullptr;
  ASSERT_EQ(table_.cuGraphAddHostNode(&first, graph, nullptr, 0, &gate), CUDA_SUCCESS);
  CUDA_MEMSET_NODE_PARAMS_v1 p{at_, 0, 5, 4, 1, 1};
  ASSERT_EQ(table_.cuGraphAddMemsetNode(&fill, graph, &first, 1, &p, context_), CUDA_SUCCESS);
  CUgraphExec exec = instantiated(graph);
  ASSERT_EQ(table_.cuGraphLaunch(exec, stream_), CUDA_SUCCESS);
  p.value = 9;
  EXPECT_EQ(table_.cuGraphExecMemsetNodeSetParams(exec, fill, &p, context_), CUDA_SUCCESS);
  go = true;
  ASSERT_EQ(table_.cuStreamSynchronize(stream_), CUDA_SUCCESS);
  EXPECT_EQ(read(at_), 5u);
  run(exec);
  EXPECT_EQ(read(at_), 9u);
}

TEST_F(graphs, memory_of_a_graph_is_there_at_every_launch) {
  CUgraph graph = nullptr;
  ASSERT_EQ(table_.cuGraphCreate(&graph, 0), CUDA_SUCCESS);
  CUDA_MEM_ALLOC_NODE_PARAMS_v1 p{};
  p.poolProps.allocType = CU_MEM_ALLOCATION_TYPE_PINNED;
  p.poolProps.location = {CU_MEM_LOCATION_TYPE_DEVICE, 0};
  p.bytesize = 1 << 16;
  CUgraphNode take = nullptr, fill = nullptr, copy = nullptr, give = nullptr;
  ASSERT_EQ(table_.cuGraphAddMemAllocNode(&take, graph, nullptr, 0, &p), CUDA_SUCCESS);
  ASSERT_NE(p.dptr, 0u);
  CUDA_MEMSET_NODE_PARAMS_v1 f{p.dptr, 0, 7, 4, 16, 1};
  ASSERT_EQ(table_.cuGraphAddMemsetNode(&fill, graph, &take, 1, &f, context_), CUDA_SUCCESS);
  CUDA_MEMCPY3D c{};
  c.srcMemoryType = c.dstMemoryType = CU_MEMORYTYPE_DEVICE;
  c.srcDevice = p.dptr + 60, c.dstDevice = at_;
  c.WidthInBytes = 4, c.Height = c.Depth = 1;
  ASSERT_EQ(table_.cuGraphAddMemcpyNode(&copy, graph, &fill, 1, &c, context_), CUDA_SUCCESS);
  ASSERT_EQ(table_.cuGraphAddMemFreeNode(&give, graph, &copy, 1, p.dptr), CUDA_SUCCESS);
  CUgraphExec exec = instantiated(graph);
  EXPECT_EQ(table_.cuGraphDestroy(graph), CUDA_SUCCESS);
  run(exec), run(exec);
  EXPECT_EQ(read(at_), 7u);
}

TEST_F(graphs, memory_that_no_node_frees_is_the_programs) {
  CUgraph graph = nullptr, freeing = nullptr;
  ASSERT_EQ(table_.cuGraphCreate(&graph, 0), CUDA_SUCCESS);
  ASSERT_EQ(table_.cuGraphCreate(&freeing, 0), CUDA_SUCCESS);
  CUDA_MEM_ALLOC_NODE_PARAMS_v1 p{};
  p.poolProps.allocType = CU_MEM_ALLOCATION_TYPE_PINNED;
  p.poolProps.location = {CU_MEM_LOCATION_TYPE_DEVICE, 0};
  p.bytesize = 1 << 16;
  CUgraphNode take = nullptr, fill = nullptr, give = nullptr;
  ASSERT_EQ(table_.cuGraphAddMemAllocNode(&take, graph, nullptr, 0, &p), CUDA_SUCCESS);
  CUDA_MEMSET_NODE_PARAMS_v1 f{p.dptr, 0, 7, 4, 16, 1};
  ASSERT_EQ(table_.cuGraphAddMemsetNode(&fill, graph, &take, 1, &f, context_), CUDA_SUCCESS);
  ASSERT_EQ(table_.cuGraphAddMemFreeNode(&give, freeing, nullptr, 0, p.dptr), CUDA_SUCCESS);
  CUgraphExec exec = instantiated(graph), other = instantiated(freeing), second = nullptr;
  CUgraph copy = nullptr;
  EXPECT_EQ(table_.cuGraphInstantiateWithFlags(&second, graph, 0), CUDA_ERROR_NOT_SUPPORTED);
  EXPECT_EQ(table_.cuGraphClone(&copy, graph), CUDA_ERROR_NOT_SUPPORTED);
  EXPECT_EQ(table_.cuGraphAddMemFreeNode(&give, freeing, nullptr, 0, at_), CUDA_ERROR_INVALID_VALUE);
  EXPECT_EQ(table_.cuMemFree_v2(p.dptr), CUDA_ERROR_INVALID_VALUE) << "nothing has allocated it";
  EXPECT_EQ(table_.cuMemFreeAsync(p.dptr, stream_), CUDA_ERROR_INVALID_VALUE);
  run(exec);
  EXPECT_EQ(read(p.dptr), 7u);
  EXPECT_EQ(table_.cuGraphLaunch(exec, stream_), CUDA_ERROR_INVALID_VALUE) << "it is still allocated";
  EXPECT_EQ(table_.cuMemFree_v2(p.dptr), CUDA_SUCCESS);
  EXPECT_EQ(table_.cuMemFree_v2(p.dptr), CUDA_ERROR_INVALID_VALUE);
  run(exec);
  EXPECT_EQ(table_.cuMemFreeAsync(p.dptr, stream_), CUDA_SUCCESS);
  run(exec);
  run(other);
  EXPECT_EQ(table_.cuGraphLaunch(other, stream_), CUDA_ERROR_INVALID_VALUE) << "freed already";
  run(exec);
  // It outlives its graph.
  EXPECT_EQ(table_.cuGraphDestroy(graph), CUDA_SUCCESS);
  EXPECT_EQ(table_.cuGraphExecDestroy(exec), CUDA_SUCCESS);
  EXPECT_EQ(read(p.dptr), 7u);
  EXPECT_EQ(table_.cuMemFree_v2(p.dptr), CUDA_SUCCESS);
}

TEST_F(graphs, a_capture_may_end_without_telling_its_graph) {
  CUgraph graph = nullptr;
  EXPECT_EQ(table_.cuStreamEndCapture(stream_, nullptr), CUDA_ERROR_ILLEGAL_STATE);
  ASSERT_EQ(table_.cuStreamBeginCapture_v2(stream_, CU_STREAM_CAPTURE_MODE_RELAXED), CUDA_SUCCESS);
  EXPECT_EQ(table_.cuStreamEndCapture(stream_, nullptr), CUDA_SUCCESS);
  ASSERT_EQ(table_.cuGraphCreate(&graph, 0), CUDA_SUCCESS);
  ASSERT_EQ(
      table_.cuStreamBeginCaptureToGraph(stream_, graph, nullptr, nullptr, 0, CU_STREAM_CAPTURE_MODE_RELAXED),
      CUDA_SUCCESS);
  ASSERT_EQ(table_.cuMemsetD32Async(at_, 3, 1, stream_), CUDA_SUCCESS);
  EXPECT_EQ(table_.cuStreamEndCapture(stream_, nullptr), CUDA_SUCCESS);
  run(instantiated(graph));
  EXPECT_EQ(read(at_), 3u);
}

TEST_F(graphs, an_event_of_one_capture_joins_no_other) {
  CUstream other = nullptr;
  CUevent event = nullptr;
  ASSERT_EQ(table_.cuStreamCreate(&other, CU_STREAM_NON_BLOCKING), CUDA_SUCCESS);
  ASSERT_EQ(table_.cuEventCreate(&event, 0), CUDA_SUCCESS);
  ASSERT_EQ(table_.cuStreamBeginCapture_v2(stream_, CU_STREAM_CAPTURE_MODE_RELAXED), CUDA_SUCCESS);
  ASSERT_EQ(table_.cuStreamBeginCapture_v2(other, CU_STREAM_CAPTURE_MODE_RELAXED), CUDA_SUCCESS);
  ASSERT_EQ(table_.cuEventRecord(event, stream_), CUDA_SUCCESS);
  EXPECT_EQ(table_.cuStreamWaitEvent(other, event, 0), CUDA_ERROR_STREAM_CAPTURE_MERGE);
  CUgraph graph = nullptr;
  EXPECT_EQ(table_.cuStreamEndCapture(stream_, &graph), CUDA_ERROR_STREAM_CAPTURE_INVALIDATED);
  EXPECT_EQ(table_.cuStreamEndCapture(other, &graph), CUDA_ERROR_STREAM_CAPTURE_INVALIDATED);
}

TEST_F(graphs, the_state_of_a_captured_event_cannot_be_asked) {
  CUevent event = nullptr;
  ASSERT_EQ(table_.cuEventCreate(&event, 0), CUDA_SUCCESS);
  ASSERT_EQ(table_.cuStreamBeginCapture_v2(stream_, CU_STREAM_CAPTURE_MODE_RELAXED), CUDA_SUCCESS);
  ASSERT_EQ(table_.cuEventRecord(event, stream_), CUDA_SUCCESS);
  EXPECT_EQ(table_.cuEventQuery(event), CUDA_ERROR_CAPTURED_EVENT);
  CUgraph graph = nullptr;
  EXPECT_EQ(table_.cuStreamEndCapture(stream_, &graph), CUDA_ERROR_STREAM_CAPTURE_INVALIDATED);
}

TEST_F(graphs, the_legacy_stream_is_forbidden_beside_a_blocking_one_under_capture) {
  CUstream blocking = nullptr;
  ASSERT_EQ(table_.cuStreamCreate(&blocking, 0), CUDA_SUCCESS);
  ASSERT_EQ(table_.cuStreamBeginCapture_v2(blocking, CU_STREAM_CAPTURE_MODE_RELAXED), CUDA_SUCCESS);
  EXPECT_EQ(table_.cuMemsetD32Async(at_, 1, 1, nullptr), CUDA_ERROR_STREAM_CAPTURE_IMPLICIT);
  CUgraph graph = nullptr;
  EXPECT_EQ(table_.cuStreamEndCapture(blocking, &graph), CUDA_ERROR_STREAM_CAPTURE_INVALIDATED);
  EXPECT_EQ(table_.cuMemsetD32Async(at_, 1, 1, nullptr), CUDA_SUCCESS);
}

TEST_F(graphs, other_threads_are_bound_by_a_global_capture_alone) {
  for (const auto mode : {CU_STREAM_CAPTURE_MODE_GLOBAL, CU_STREAM_CAPTURE_MODE_THREAD_LOCAL}) {
    ASSERT_EQ(table_.cuStreamBeginCapture_v2(stream_, mode), CUDA_SUCCESS);
    CUresult seen = CUDA_SUCCESS;
    std::thread([&] {
      table_.cuCtxSetCurrent(context_);
      CUdeviceptr block = 0;
      seen = table_.cuMemAlloc_v2(&block, 16);
    }).join();
    const bool global = mode == CU_STREAM_CAPTURE_MODE_GLOBAL;
    EXPECT_EQ(seen, global ? CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED : CUDA_SUCCESS);
    CUgraph graph = nullptr;
    EXPECT_EQ(table_.cuStreamEndCapture(stream_, &graph),
              global ? CUDA_ERROR_STREAM_CAPTURE_INVALIDATED : CUDA_SUCCESS);
  }
}

TEST_F(graphs, user_objects_outlive_what_refers_to_them) {
  std::atomic<int> gone{0};
  const auto count = [](void* data) { ++*static_cast<std::atomic<int>*>(data); };
  CUuserObject object = nullptr;
  CUgraph graph = nullptr, clone = nullptr;
  ASSERT_EQ(table_.cuGraphCreate(&graph, 0), CUDA_SUCCESS);
  ASSERT_EQ(table_.cuUserObjectCreate(&object, &gone, count, 2, CU_USER_OBJECT_NO_DESTRUCTOR_SYNC),
            CUDA_SUCCESS);
  ASSERT_EQ(table_.cuGraphRetainUserObject(graph, object, 1, CU_GRAPH_USER_OBJECT_MOVE), CUDA_SUCCESS);
  ASSERT_EQ(table_.cuGraphClone(&clone, graph), CUDA_SUCCESS);
  CUgraphExec exec = instantiated(clone);
  EXPECT_EQ(table_.cuUserObjectRelease(object, 2), CUDA_SUCCESS) << "more than it has is all that it has";
  EXPECT_EQ(table_.cuGraphDestroy(graph), CUDA_SUCCESS);
  EXPECT_EQ(table_.cuGraphDestroy(clone), CUDA_SUCCESS);
  EXPECT_EQ(gone, 0);
  EXPECT_EQ(table_.cuGraphExecDestroy(exec), CUDA_SUCCESS);
  EXPECT_EQ(gone, 1);
}

TEST_F(graphs, a_stream_that_is_destroyed_ends_its_capture) {
  ASSERT_EQ(table_.cuStreamBeginCapture_v2(stream_, CU_STREAM_CAPTURE_MODE_GLOBAL), CUDA_SUCCESS);
  EXPECT_EQ(table_.cuStreamDestroy_v2(stream_), CUDA_SUCCESS);
  EXPECT_EQ(table_.cuCtxSynchronize(), CUDA_SUCCESS);
}

TEST_F(graphs, a_refused_launch_loses_the_capture) {
  ASSERT_EQ(table_.cuStreamBeginCapture_v2(stream_, CU_STREAM_CAPTURE_MODE_GLOBAL), CUDA_SUCCESS);
  EXPECT_EQ(table_.cuLaunchKernel(function(module_, "increment"), 1, 1, 1, 4096, 1, 1, 0, stream_, nullptr,
                                  nullptr),
            CUDA_ERROR_INVALID_VALUE);
  CUgraph graph = nullptr;
  EXPECT_EQ(table_.cuStreamEndCapture(stream_, &graph), CUDA_ERROR_STREAM_CAPTURE_INVALIDATED);
}

TEST_F(graphs, a_fill_of_nowhere_is_captured_and_faults_when_it_runs) {
  ASSERT_EQ(table_.cuStreamBeginCapture_v2(stream_, CU_STREAM_CAPTURE_MODE_GLOBAL), CUDA_SUCCESS);
  EXPECT_EQ(table_.cuMemsetD8Async(0x600000000000, 1, 64, stream_), CUDA_SUCCESS);
  CUgraph graph = nullptr;
  ASSERT_EQ(table_.cuStreamEndCapture(stream_, &graph), CUDA_SUCCESS);
  ASSERT_EQ(table_.cuGraphLaunch(instantiated(graph), stream_), CUDA_SUCCESS);
  EXPECT_EQ(table_.cuStreamSynchronize(stream_), CUDA_ERROR_ILLEGAL_ADDRESS);
}

TEST_F(graphs, a_context_cannot_be_waited_for_while_one_of_its_streams_captures) {
  ASSERT_EQ(table_.cuStreamBeginCapture_v2(stream_, CU_STREAM_CAPTURE_MODE_RELAXED), CUDA_SUCCESS);
  EXPECT_EQ(table_.cuCtxSynchronize(), CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED);
  CUgraph graph = nullptr;
  EXPECT_EQ(table_.cuStreamEndCapture(stream_, &graph), CUDA_ERROR_STREAM_CAPTURE_INVALIDATED);
}

TEST_F(graphs, asking_for_captures_beside_one_loses_none) {
  CUstream blocking = nullptr;
  ASSERT_EQ(table_.cuStreamCreate(&blocking, 0), CUDA_SUCCESS);
  ASSERT_EQ(table_.cuStreamBeginCapture_v2(blocking, CU_STREAM_CAPTURE_MODE_RELAXED), CUDA_SUCCESS);
  CUstreamCaptureStatus status{};
  EXPECT_EQ(table_.cuStreamIsCapturing(nullptr, &status), CUDA_ERROR_STREAM_CAPTURE_IMPLICIT);
  CUgraph graph = nullptr;
  EXPECT_EQ(table_.cuStreamEndCapture(blocking, &graph), CUDA_SUCCESS);
}

TEST_F(graphs, handles_and_addresses_belong_to_one_graph_and_one_node) {
  CUgraph mine = nullptr, other = nullptr;
  ASSERT_EQ(table_.cuGraphCreate(&mine, 0), CUDA_SUCCESS);
  ASSERT_EQ(table_.cuGraphCreate(&other, 0), CUDA_SUCCESS);
  CUgraphNodeParams p{};
  p.type = CU_GRAPH_NODE_TYPE_CONDITIONAL;
  p.conditional.type = CU_GRAPH_COND_TYPE_IF, p.conditional.size = 1, p.conditional.ctx = context_;
  ASSERT_EQ(table_.cuGraphConditionalHandleCreate(&p.conditional.handle, other, context_, 0, 0),
            CUDA_SUCCESS);
  CUgraphNode node = nullptr, freeing = nullptr;
  EXPECT_EQ(table_.cuGraphAddNode(&node, mine, nullptr, 0, &p), CUDA_ERROR_INVALID_VALUE);
  EXPECT_EQ(table_.cuGraphAddNode(&node, other, nullptr, 0, &p), CUDA_SUCCESS);
  CUDA_MEM_ALLOC_NODE_PARAMS_v1 block{};
  block.poolProps.allocType = CU_MEM_ALLOCATION_TYPE_PINNED;
  block.poolProps.location.type = CU_MEM_LOCATION_TYPE_DEVICE;
  block.bytesize = 4096;
  ASSERT_EQ(table_.cuGraphAddMemAllocNode(&node, mine, nullptr, 0, &block), CUDA_SUCCESS);
  EXPECT_EQ(table_.cuGraphAddMemFreeNode(&freeing, mine, &node, 1, block.dptr), CUDA_SUCCESS);
  EXPECT_EQ(table_.cuGraphAddMemFreeNode(&freeing, mine, &node, 1, block.dptr), CUDA_ERROR_INVALID_VALUE);
}

/// A node keeps the address of memory that goes before the launch: of the program's own, which it registered
/// and unmapped, or of a reservation.
class gone_memory : public graphs {
 protected:
  static constexpr std::size_t size = 64 << 10;

  void SetUp() override {
    graphs::SetUp();
    ASSERT_EQ(table_.cuGraphCreate(&graph_, 0), CUDA_SUCCESS);
    page_ = ::mmap(nullptr, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    ASSERT_NE(page_, MAP_FAILED);
    ASSERT_EQ(table_.cuMemHostRegister_v2(page_, size, CU_MEMHOSTREGISTER_DEVICEMAP), CUDA_SUCCESS);
    ASSERT_EQ(table_.cuMemHostGetDevicePointer_v2(&block_, page_, 0), CUDA_SUCCESS);
  }
  CUresult add_copy(CUdeviceptr to, CUdeviceptr from, CUmemorytype type, std::size_t bytes = 4) {
    CUDA_MEMCPY3D c{};
    c.srcMemoryType = c.dstMemoryType = type;
    c.srcDevice = from, c.dstDevice = to;
    c.srcHost = reinterpret_cast<const void*>(from), c.dstHost = reinterpret_cast<void*>(to);
    c.WidthInBytes = bytes, c.Height = c.Depth = 1;
    CUgraphNode node = nullptr;
    return table_.cuGraphAddMemcpyNode(&node, graph_, nullptr, 0, &c, context_);
  }
  void lose_the_block() {
    ASSERT_EQ(table_.cuMemHostUnregister(page_), CUDA_SUCCESS);
    ASSERT_EQ(::munmap(page_, size), 0);
  }
  void expect_fault(CUgraphExec exec) {
    ASSERT_EQ(table_.cuGraphLaunch(exec, stream_), CUDA_SUCCESS);
    EXPECT_EQ(table_.cuStreamSynchronize(stream_), CUDA_ERROR_ILLEGAL_ADDRESS);
  }

  CUgraph graph_ = nullptr;
  void* page_ = nullptr;
  CUdeviceptr block_ = 0;
};

/// By whatever name the copy calls it: page-locked memory has the same address on both sides.
class gone_memory_by_type : public gone_memory, public ::testing::WithParamInterface<CUmemorytype> {};

TEST_P(gone_memory_by_type, is_not_written_by_a_copy) {
  ASSERT_EQ(add_copy(block_ + 100, at_, GetParam()), CUDA_SUCCESS);
  CUgraphExec exec = instantiated(graph_);
  run(exec);
  lose_the_block();
  expect_fault(exec);
}

TEST_P(gone_memory_by_type, is_not_read_by_a_copy) {
  ASSERT_EQ(add_copy(at_, block_ + 100, GetParam()), CUDA_SUCCESS);
  CUgraphExec exec = instantiated(graph_);
  run(exec);
  lose_the_block();
  expect_fault(exec);
}

TEST_P(gone_memory_by_type, has_an_end_that_no_copy_leaves) {
  EXPECT_EQ(add_copy(at_, block_ + size - 2, GetParam()), CUDA_ERROR_INVALID_VALUE);
  EXPECT_EQ(add_copy(block_ + size - 2, at_, GetParam()), CUDA_ERROR_INVALID_VALUE);
}

INSTANTIATE_TEST_SUITE_P(all, gone_memory_by_type,
                         ::testing::Values(CU_MEMORYTYPE_DEVICE, CU_MEMORYTYPE_UNIFIED, CU_MEMORYTYPE_HOST));

TEST_F(gone_memory, is_not_filled) {
  CUDA_MEMSET_NODE_PARAMS_v1 p{block_, 0, 7, 4, 16, 1};
  CUgraphNode node = nullptr;
  ASSERT_EQ(table_.cuGraphAddMemsetNode(&node, graph_, nullptr, 0, &p, context_), CUDA_SUCCESS);
  CUgraphExec exec = instantiated(graph_);
  run(exec);
  lose_the_block();
  expect_fault(exec);
}

TEST_F(gone_memory, is_not_written_by_a_memory_operation) {
  CUstreamBatchMemOpParams one{};
  one.writeValue.operation = CU_STREAM_MEM_OP_WRITE_VALUE_32;
  one.writeValue.address = block_;
  CUDA_BATCH_MEM_OP_NODE_PARAMS_v1 p{context_, 1, &one, 0};
  CUgraphNode node = nullptr;
  ASSERT_EQ(table_.cuGraphAddBatchMemOpNode(&node, graph_, nullptr, 0, &p), CUDA_SUCCESS);
  CUgraphExec exec = instantiated(graph_);
  run(exec);
  lose_the_block();
  expect_fault(exec);
}

TEST_F(gone_memory, of_a_reservation_is_not_touched) {
  CUdeviceptr range = 0;
  CUmemGenericAllocationHandle memory = 0;
  CUmemAllocationProp kind{};
  kind.type = CU_MEM_ALLOCATION_TYPE_PINNED;
  kind.location = {CU_MEM_LOCATION_TYPE_DEVICE, 0};
  const CUmemAccessDesc access{kind.location, CU_MEM_ACCESS_FLAGS_PROT_READWRITE};
  constexpr std::size_t bytes = 2u << 20;
  ASSERT_EQ(table_.cuMemAddressReserve(&range, bytes, 0, 0, 0), CUDA_SUCCESS);
  ASSERT_EQ(table_.cuMemCreate(&memory, bytes, &kind, 0), CUDA_SUCCESS);
  ASSERT_EQ(table_.cuMemMap(range, bytes, 0, memory, 0), CUDA_SUCCESS);
  ASSERT_EQ(table_.cuMemSetAccess(range, bytes, &access, 1), CUDA_SUCCESS);
  ASSERT_EQ(add_copy(range, at_, CU_MEMORYTYPE_DEVICE), CUDA_SUCCESS);
  CUgraphExec exec = instantiated(graph_);
  run(exec);
  ASSERT_EQ(table_.cuMemUnmap(range, bytes), CUDA_SUCCESS);
  ASSERT_EQ(table_.cuMemAddressFree(range, bytes), CUDA_SUCCESS);
  expect_fault(exec);
}

}  // namespace
}  // namespace outboard::device::cpu
