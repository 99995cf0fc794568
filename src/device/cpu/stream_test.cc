#include <atomic>
#include <chrono>
#include <cstring>
#include <thread>
#include <vector>

#include "device/cpu/fixture.hh"

namespace outboard::device::cpu {
namespace {

using namespace std::chrono_literals;

/// A host function that holds its stream until opened, and says that it has been reached.
struct gate {
  std::atomic<bool> open{false}, reached{false};
  static void wait(void* self) {
    auto* g = static_cast<gate*>(self);
    g->reached = true;
    while (!g->open) std::this_thread::sleep_for(100us);
  }
};

class stream_test : public device_test {
 protected:
  CUstream make(unsigned flags = CU_STREAM_DEFAULT) {
    CUstream s = nullptr;
    EXPECT_EQ(table_.cuStreamCreate(&s, flags), CUDA_SUCCESS);
    return s;
  }
  CUevent event(unsigned flags = 0) {
    CUevent e = nullptr;
    EXPECT_EQ(table_.cuEventCreate(&e, flags), CUDA_SUCCESS);
    return e;
  }
  void hold(gate& g, CUstream s) { ASSERT_EQ(table_.cuLaunchHostFunc(s, gate::wait, &g), CUDA_SUCCESS); }
};

TEST_F(stream_test, AStreamKeepsItsOrder) {
  const CUfunction f = function(load(), "increment");
  const CUdeviceptr at = allocate(4);
  const CUstream s = make();
  for (int i = 0; i < 2000; ++i) ASSERT_EQ(launch(f, s, at), CUDA_SUCCESS);
  unsigned seen = 0;
  ASSERT_EQ(table_.cuMemcpyDtoHAsync_v2(&seen, at, 4, s), CUDA_SUCCESS);
  EXPECT_EQ(table_.cuStreamSynchronize(s), CUDA_SUCCESS);
  EXPECT_EQ(seen, 2000u) << "non-atomic increments one after the other";
}

TEST_F(stream_test, WhoWaitsForTheLegacyStreamWaitsForBlockingOnes) {
  gate blocking, free;
  const CUstream s = make(), other = make(CU_STREAM_NON_BLOCKING);
  hold(blocking, s);
  hold(free, other);
  std::atomic<bool> over{false};
  std::thread waiting([&] {
    ASSERT_EQ(table_.cuCtxSetCurrent(context_), CUDA_SUCCESS);
    EXPECT_EQ(table_.cuStreamSynchronize(nullptr), CUDA_SUCCESS);
    over = true;
  });
  std::this_thread::sleep_for(20ms);
  EXPECT_FALSE(over);
  blocking.open = true;
  waiting.join();
  EXPECT_EQ(table_.cuStreamQuery(other), CUDA_ERROR_NOT_READY);
  free.open = true;
  EXPECT_EQ(table_.cuStreamSynchronize(other), CUDA_SUCCESS);  // the gate dies with this test
}

TEST_F(stream_test, QueryTellsWhetherWorkIsLeft) {
  gate g;
  const CUstream s = make();
  EXPECT_EQ(table_.cuStreamQuery(s), CUDA_SUCCESS);
  hold(g, s);
  EXPECT_EQ(table_.cuStreamQuery(s), CUDA_ERROR_NOT_READY);
  g.open = true;
  EXPECT_EQ(table_.cuStreamSynchronize(s), CUDA_SUCCESS);
  EXPECT_EQ(table_.cuStreamQuery(s), CUDA_SUCCESS);
}

TEST_F(stream_test, EventsOrderStreams) {
  const CUfunction f = function(load(), "store");
  const CUdeviceptr at = allocate(4);
  const CUstream first = make(CU_STREAM_NON_BLOCKING), second = make(CU_STREAM_NON_BLOCKING);
  gate g;
  const CUevent e = event();
  hold(g, first);
  launch(f, first, at, 1u);
  ASSERT_EQ(table_.cuEventRecord(e, first), CUDA_SUCCESS);
  ASSERT_EQ(table_.cuStreamWaitEvent(second, e, 0), CUDA_SUCCESS);
  launch(f, second, at, 2u);
  std::this_thread::sleep_for(5ms);
  EXPECT_EQ(table_.cuStreamQuery(second), CUDA_ERROR_NOT_READY);
  EXPECT_EQ(table_.cuEventQuery(e), CUDA_ERROR_NOT_READY);
  g.open = true;
  EXPECT_EQ(table_.cuStreamSynchronize(second), CUDA_SUCCESS);
  EXPECT_EQ(table_.cuEventQuery(e), CUDA_SUCCESS);
  EXPECT_EQ(read(at), 2u);
}

TEST_F(stream_test, UnrecordedEventsAreDoneAndHaveNoTime) {
  const CUevent e = event(), f = event();
  float ms = -1;
  EXPECT_EQ(table_.cuEventQuery(e), CUDA_SUCCESS);
  EXPECT_EQ(table_.cuEventSynchronize(e), CUDA_SUCCESS);
  EXPECT_EQ(table_.cuEventElapsedTime_v2(&ms, e, f), CUDA_ERROR_INVALID_HANDLE);
}

TEST_F(stream_test, EventTimesAreReal) {
  const CUevent from = event(), to = event(), untimed = event(CU_EVENT_DISABLE_TIMING);
  gate g;
  const CUstream s = make();
  float ms = -1;
  table_.cuEventRecord(from, s);
  hold(g, s);
  table_.cuEventRecord(to, s);
  EXPECT_EQ(table_.cuEventElapsedTime_v2(&ms, from, to), CUDA_ERROR_NOT_READY);
  std::this_thread::sleep_for(30ms);
  g.open = true;
  ASSERT_EQ(table_.cuEventSynchronize(to), CUDA_SUCCESS);
  ASSERT_EQ(table_.cuEventElapsedTime_v2(&ms, from, to), CUDA_SUCCESS);
  EXPECT_GE(ms, 29.0f);
  table_.cuEventRecord(untimed, s);
  table_.cuStreamSynchronize(s);
  EXPECT_EQ(table_.cuEventElapsedTime_v2(&ms, from, untimed), CUDA_ERROR_INVALID_HANDLE);
}

TEST_F(stream_test, LegacyStreamWaitsForBlockingStreamsAndHoldsThem) {
  const CUstream blocking = make(), other = make();
  gate first, legacy;
  std::atomic<int> behind{0};
  const auto count = [](void* n) { ++*static_cast<std::atomic<int>*>(n); };
  hold(first, blocking);
  hold(legacy, nullptr);
  table_.cuLaunchHostFunc(other, count, &behind);
  std::this_thread::sleep_for(5ms);
  EXPECT_FALSE(legacy.reached) << "the legacy stream follows earlier work of blocking streams";
  EXPECT_EQ(behind, 0) << "blocking streams follow earlier work of the legacy stream";
  first.open = true;
  while (!legacy.reached) std::this_thread::yield();
  EXPECT_EQ(behind, 0);
  legacy.open = true;
  EXPECT_EQ(table_.cuCtxSynchronize(), CUDA_SUCCESS);
  EXPECT_EQ(behind, 1);
}

TEST_F(stream_test, NonBlockingStreamsIgnoreTheLegacyStream) {
  const CUstream free = make(CU_STREAM_NON_BLOCKING);
  const CUdeviceptr at = allocate(4);
  gate g;
  hold(g, CU_STREAM_LEGACY);
  EXPECT_EQ(launch(function(load(), "increment"), free, at), CUDA_SUCCESS);
  EXPECT_EQ(table_.cuStreamSynchronize(free), CUDA_SUCCESS);
  EXPECT_FALSE(g.open);
  g.open = true;
  EXPECT_EQ(read(at), 1u);
}

TEST_F(stream_test, PerThreadStreamsAreBlockingAndApart) {
  gate g;
  hold(g, CU_STREAM_PER_THREAD);
  EXPECT_EQ(table_.cuStreamQuery_ptsz(nullptr), CUDA_ERROR_NOT_READY) << "0 means the thread's own here";
  std::thread([&] {
    table_.cuCtxSetCurrent(context_);
    EXPECT_EQ(table_.cuStreamQuery_ptsz(nullptr), CUDA_SUCCESS) << "another thread's is another stream";
    EXPECT_EQ(table_.cuStreamSynchronize_ptsz(nullptr), CUDA_SUCCESS);
  }).join();
  gate legacy;
  legacy.open = true;
  hold(legacy, nullptr);
  std::this_thread::sleep_for(5ms);
  EXPECT_FALSE(legacy.reached);
  g.open = true;
  table_.cuCtxSynchronize();
  EXPECT_TRUE(legacy.reached);
}

TEST_F(stream_test, CopiesFromPageableMemoryLetTheSourceGo) {
  const CUstream s = make();
  const CUdeviceptr at = allocate(1 << 20);
  gate g;
  hold(g, s);
  unsigned value = 7;
  ASSERT_EQ(table_.cuMemcpyHtoDAsync_v2(at, &value, 4, s), CUDA_SUCCESS);
  value = 8;
  g.open = true;
  table_.cuStreamSynchronize(s);
  EXPECT_EQ(read(at), 7u);
}

TEST_F(stream_test, PinnedCopiesDoNotBlockTheCaller) {
  const CUstream s = make();
  const CUdeviceptr at = allocate(4 << 20);
  void* pinned = nullptr;
  ASSERT_EQ(table_.cuMemHostAlloc(&pinned, 4 << 20, 0), CUDA_SUCCESS);
  gate g;
  hold(g, s);
  ASSERT_EQ(table_.cuMemsetD8Async(at, 9, 4 << 20, s), CUDA_SUCCESS);
  ASSERT_EQ(table_.cuMemcpyDtoHAsync_v2(pinned, at, 4 << 20, s), CUDA_SUCCESS);
  EXPECT_FALSE(g.open);
  g.open = true;
  table_.cuStreamSynchronize(s);
  EXPECT_EQ(static_cast<unsigned char*>(pinned)[(4 << 20) - 1], 9);
  EXPECT_EQ(table_.cuMemFreeHost(pinned), CUDA_SUCCESS);
}

TEST_F(stream_test, RunningKernelSeesTheHostsStore) {
  const CUfunction f = function(load(), "spin_until");
  void* flag = nullptr;
  table_.cuMemHostAlloc(&flag, 4, CU_MEMHOSTALLOC_DEVICEMAP);
  CUdeviceptr mapped = 0;
  ASSERT_EQ(table_.cuMemHostGetDevicePointer_v2(&mapped, flag, 0), CUDA_SUCCESS);
  const CUstream s = make();
  ASSERT_EQ(launch(f, s, mapped), CUDA_SUCCESS);
  std::this_thread::sleep_for(5ms);
  EXPECT_EQ(table_.cuStreamQuery(s), CUDA_ERROR_NOT_READY);
  std::atomic_ref(*static_cast<unsigned*>(flag)).store(1);
  EXPECT_EQ(table_.cuStreamSynchronize(s), CUDA_SUCCESS);
}

TEST_F(stream_test, StreamMemoryOperationsOrderStreams) {
  const CUstream waiting = make(CU_STREAM_NON_BLOCKING), writing = make(CU_STREAM_NON_BLOCKING);
  const CUdeviceptr flag = allocate(8);
  ASSERT_EQ(table_.cuStreamWaitValue32_v2(waiting, flag, 3, CU_STREAM_WAIT_VALUE_GEQ), CUDA_SUCCESS);
  EXPECT_EQ(table_.cuStreamQuery(waiting), CUDA_ERROR_NOT_READY);
  ASSERT_EQ(table_.cuStreamWriteValue32_v2(writing, flag, 4, 0), CUDA_SUCCESS);
  EXPECT_EQ(table_.cuStreamSynchronize(waiting), CUDA_SUCCESS);
}

TEST_F(stream_test, APeerCopyComesBetweenTheWorkThatAContextHasAndWhatItGetsLater) {
  gate earlier;
  CUcontext other = nullptr;
  const CUdeviceptr here = allocate(4), there = allocate(4);
  ASSERT_EQ(table_.cuCtxCreate_v2(&other, 0, 0), CUDA_SUCCESS);
  const CUstream first = make(CU_STREAM_NON_BLOCKING), second = make(CU_STREAM_NON_BLOCKING);
  hold(earlier, first);
  ASSERT_EQ(table_.cuMemsetD32Async(there, 3, 1, first), CUDA_SUCCESS);
  ASSERT_EQ(table_.cuCtxSetCurrent(context_), CUDA_SUCCESS);
  ASSERT_EQ(table_.cuMemcpyPeer(here, context_, there, other, 4), CUDA_SUCCESS);
  ASSERT_EQ(table_.cuCtxSetCurrent(other), CUDA_SUCCESS);
  ASSERT_EQ(table_.cuMemsetD32Async(there, 9, 1, second), CUDA_SUCCESS);
  EXPECT_EQ(table_.cuStreamQuery(second), CUDA_ERROR_NOT_READY);
  earlier.open = true;
  ASSERT_EQ(table_.cuStreamSynchronize(second), CUDA_SUCCESS);
  EXPECT_EQ(read(here), 3u);
  EXPECT_EQ(read(there), 9u);
  EXPECT_EQ(table_.cuCtxDestroy_v2(other), CUDA_SUCCESS);
  ASSERT_EQ(table_.cuCtxSetCurrent(context_), CUDA_SUCCESS);
}

TEST_F(stream_test, CallsFromHostFunctionsAreNotPermitted) {
  struct seen_code {
    const api::driver_table& table;
    std::atomic<int> code{-1};
  } seen{table_};
  const auto function = [](void* data) {
    auto* s = static_cast<seen_code*>(data);
    CUdeviceptr at = 0;
    s->code = s->table.cuMemAlloc_v2(&at, 4);
  };
  table_.cuLaunchHostFunc(nullptr, function, &seen);
  table_.cuCtxSynchronize();
  // A pool thread has no context; one that helps a waiting caller has: neither may call.
  EXPECT_NE(seen.code, CUDA_SUCCESS);
  EXPECT_EQ(seen.code, CUDA_ERROR_NOT_PERMITTED);
}

TEST_F(stream_test, DestroyedStreamsFinishTheirWork) {
  const CUfunction f = function(load(), "increment");
  const CUdeviceptr at = allocate(4);
  const CUstream s = make();
  for (int i = 0; i < 100; ++i) launch(f, s, at);
  EXPECT_EQ(table_.cuStreamDestroy_v2(s), CUDA_SUCCESS);
  EXPECT_EQ(table_.cuStreamQuery(s), CUDA_ERROR_INVALID_HANDLE);
  table_.cuCtxSynchronize();
  EXPECT_EQ(read(at), 100u);
}

TEST_F(stream_test, FreeWaitsForKernelsThatUseTheMemory) {
  const CUfunction f = function(load(), "increment");
  const CUdeviceptr at = allocate(4);
  for (int i = 0; i < 200; ++i) launch(f, nullptr, at);
  EXPECT_EQ(table_.cuMemFree_v2(at), CUDA_SUCCESS);
  EXPECT_EQ(table_.cuCtxSynchronize(), CUDA_SUCCESS);
}

TEST_F(stream_test, AThousandThreadsWorkAtOnce) {
  const CUfunction f = function(load(), "add_one_atomic");
  const CUdeviceptr at = allocate(4);
  std::atomic<int> bad{0};
  std::vector<std::thread> threads;
  for (int t = 0; t < 1000; ++t) {
    threads.emplace_back([&] {
      CUdeviceptr target = at;
      void* parameters[] = {&target};
      CUstream s = nullptr;
      bad += table_.cuCtxSetCurrent(context_) != CUDA_SUCCESS;
      bad += table_.cuStreamCreate(&s, CU_STREAM_NON_BLOCKING) != CUDA_SUCCESS;
      bad += table_.cuLaunchKernel(f, 1, 1, 1, 1, 1, 1, 0, s, parameters, nullptr) != CUDA_SUCCESS;
      bad += table_.cuLaunchKernel_ptsz(f, 1, 1, 1, 1, 1, 1, 0, nullptr, parameters, nullptr) != CUDA_SUCCESS;
      bad += table_.cuStreamSynchronize(s) != CUDA_SUCCESS;
      bad += table_.cuStreamSynchronize_ptsz(nullptr) != CUDA_SUCCESS;
      bad += table_.cuStreamDestroy_v2(s) != CUDA_SUCCESS;
    });
  }
  for (auto& t : threads) t.join();
  EXPECT_EQ(bad, 0);
  EXPECT_EQ(read(at), 2000u);
}

TEST_F(stream_test, AttributesAreKeptAndCopied) {
  CUstream from = nullptr, to = nullptr;
  ASSERT_EQ(table_.cuStreamCreate(&from, 0), CUDA_SUCCESS);
  ASSERT_EQ(table_.cuStreamCreate(&to, 0), CUDA_SUCCESS);
  CUstreamAttrValue value{};
  EXPECT_EQ(table_.cuStreamGetAttribute(from, CU_LAUNCH_ATTRIBUTE_SYNCHRONIZATION_POLICY, &value),
            CUDA_SUCCESS);
  EXPECT_EQ(value.syncPolicy, CU_SYNC_POLICY_AUTO);
  value.syncPolicy = CU_SYNC_POLICY_YIELD;
  EXPECT_EQ(table_.cuStreamSetAttribute(from, CU_LAUNCH_ATTRIBUTE_SYNCHRONIZATION_POLICY, &value),
            CUDA_SUCCESS);
  EXPECT_EQ(table_.cuStreamCopyAttributes(to, from), CUDA_SUCCESS);
  value = {};
  EXPECT_EQ(table_.cuStreamGetAttribute(to, CU_LAUNCH_ATTRIBUTE_SYNCHRONIZATION_POLICY, &value),
            CUDA_SUCCESS);
  EXPECT_EQ(value.syncPolicy, CU_SYNC_POLICY_YIELD);
  value = {};
  value.accessPolicyWindow.hitRatio = 2;
  EXPECT_EQ(table_.cuStreamSetAttribute(to, CU_LAUNCH_ATTRIBUTE_ACCESS_POLICY_WINDOW, &value),
            CUDA_ERROR_INVALID_VALUE);
  EXPECT_EQ(table_.cuStreamGetAttribute(to, CU_LAUNCH_ATTRIBUTE_COOPERATIVE, &value),
            CUDA_ERROR_INVALID_VALUE);
}

}  // namespace
}  // namespace outboard::device::cpu
