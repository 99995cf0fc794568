// Events between two processes that see the same devices: an event of the one's last device, which is
// recorded behind a host function, is waited for by the other one in a stream of that device, in one of its
// first device, and by itself. With one device all of it is that one's.
#include <cuda.h>

#include <atomic>
#include <thread>

#include "processes.hh"

namespace {

struct device_context {
  CUcontext context = nullptr;
  void enter() const { MUST(cuCtxSetCurrent(context)); }
};

device_context open(CUdevice device) {
  device_context made;
  MUST(cuDevicePrimaryCtxRetain(&made.context, device));
  made.enter();
  return made;
}

CUdevice last_device() {
  int count = 0;
  MUST(cuInit(0));
  MUST(cuDeviceGetCount(&count));
  return count - 1;
}

/// Another one than open(last_device()).
device_context open_another() {
  device_context made;
  if (last_device() != 0) return open(0);
  MUST(cuCtxCreate(&made.context, nullptr, 0, 0));
  return made;
}

struct offered {
  CUipcMemHandle memory;
  CUipcEventHandle event;
};

void CUDA_CB wait_for_leave(void* leave) {
  while (!*static_cast<std::atomic<bool>*>(leave)) std::this_thread::yield();
}

/// Twice: the second time the event has been recorded before.
void records(channel& to) {
  open(last_device());
  CUdeviceptr at = 0;
  CUevent event = nullptr;
  CUstream stream = nullptr;
  offered out{};
  MUST(cuMemAlloc(&at, 4));
  MUST(cuEventCreate(&event, CU_EVENT_DISABLE_TIMING | CU_EVENT_INTERPROCESS));
  MUST(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
  MUST(cuIpcGetMemHandle(&out.memory, at));
  MUST(cuIpcGetEventHandle(&out.event, event));
  to.put(out);
  for (unsigned round = 1; round <= 2; ++round) {
    std::atomic<bool> leave{false};
    MUST(cuLaunchHostFunc(stream, wait_for_leave, &leave));
    MUST(cuMemsetD32Async(at, 100 + round, 1, stream));
    MUST(cuEventRecord(event, stream));
    to.tell();
    to.hear();  // the other one waits
    leave = true;
    MUST(cuStreamSynchronize(stream));
    to.hear();
  }
  MUST(cuEventDestroy(event));
  MUST(cuStreamDestroy(stream));
  MUST(cuMemFree(at));
}

enum class in { its_context, another };

/// Opened in this context, and waited for in a stream of it, or by the host.
void awaits(channel& to, in where, bool by_host = false) {
  const device_context owner = open(last_device()), other = open_another();
  const auto enter = [&](in which) { (which == in::another ? other : owner).enter(); };
  const auto given = to.take<offered>();
  CUdeviceptr at = 0;
  CUevent event = nullptr;
  CUstream stream = nullptr;
  owner.enter();
  MUST(cuIpcOpenMemHandle(&at, given.memory, CU_IPC_MEM_LAZY_ENABLE_PEER_ACCESS));
  enter(where);
  MUST(cuIpcOpenEventHandle(&event, given.event));
  MUST(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
  for (unsigned round = 1; round <= 2; ++round) {
    to.hear();
    EXPECT(cuEventQuery(event) == CUDA_ERROR_NOT_READY);
    if (by_host) {
      std::thread teller([&] { to.tell(); });
      MUST(cuEventSynchronize(event));
      teller.join();
    } else {
      enter(where);
      MUST(cuStreamWaitEvent(stream, event, 0));
      EXPECT(cuStreamQuery(stream) == CUDA_ERROR_NOT_READY);
      to.tell();
      MUST(cuStreamSynchronize(stream));
    }
    MUST(cuEventQuery(event));
    unsigned value = 0;
    owner.enter();
    MUST(cuMemcpyDtoH(&value, at, sizeof value));
    EXPECT(value == 100 + round);
    to.tell();
  }
  enter(where);
  MUST(cuEventDestroy(event));
  owner.enter();
  MUST(cuIpcCloseMemHandle(at));
}

void in_its_context(channel& to) { awaits(to, in::its_context); }
void in_another(channel& to) { awaits(to, in::another); }
void by_the_host(channel& to) { awaits(to, in::its_context, true); }

}  // namespace

int main(int count, char** values) {
  return play("ipc_events",
              {{"in_its_context", records, in_its_context},
               {"in_another", records, in_another},
               {"by_the_host", records, by_the_host}},
              count, values);
}
