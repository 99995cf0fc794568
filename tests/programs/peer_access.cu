// Peers: the codes on one device; with a second one, kernels and copies that use the other device's memory,
// blocks made before and after access was enabled, and a process that opens memory of a device on which it
// does not compute.
#include <cuda.h>

#include "processes.hh"

namespace {

__global__ void add_one(unsigned* to, const unsigned* from, int count) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < count) to[i] = from[i] + 1;
}

constexpr int words = 1 << 18;

void on_one_device(channel& to) {
  int can = 9, value = 9;
  CUcontext context, second;
  MUST(cuInit(0));
  MUST(cuDevicePrimaryCtxRetain(&context, 0));
  MUST(cuCtxSetCurrent(context));
  MUST(cuDeviceCanAccessPeer(&can, 0, 0));
  EXPECT(can == 0);
  EXPECT(cuDeviceCanAccessPeer(&can, 0, 99) == CUDA_ERROR_INVALID_DEVICE);
  EXPECT(cuDeviceCanAccessPeer(&can, -1, 0) == CUDA_ERROR_INVALID_DEVICE);
  EXPECT(cuDeviceCanAccessPeer(nullptr, 0, 0) == CUDA_ERROR_INVALID_VALUE);
  const auto supported = CU_DEVICE_P2P_ATTRIBUTE_ACCESS_SUPPORTED;
  EXPECT(cuDeviceGetP2PAttribute(&value, supported, 0, 0) == CUDA_ERROR_INVALID_DEVICE);
  EXPECT(cuDeviceGetP2PAttribute(&value, supported, 99, 0) == CUDA_ERROR_INVALID_DEVICE);
  EXPECT(cuDeviceGetP2PAttribute(nullptr, supported, 0, 0) == CUDA_ERROR_INVALID_VALUE);
  EXPECT(cuCtxEnablePeerAccess(context, 0) == CUDA_ERROR_PEER_ACCESS_UNSUPPORTED);
  EXPECT(cuCtxEnablePeerAccess(context, 1) == CUDA_ERROR_INVALID_VALUE);
  EXPECT(cuCtxEnablePeerAccess(nullptr, 0) == CUDA_ERROR_INVALID_CONTEXT);
  EXPECT(cuCtxDisablePeerAccess(context) == CUDA_ERROR_PEER_ACCESS_NOT_ENABLED);
  EXPECT(cuCtxDisablePeerAccess(nullptr) == CUDA_ERROR_INVALID_CONTEXT);
  CUdeviceptr a, b;
  MUST(cuMemAlloc(&a, 4096));
  MUST(cuCtxCreate(&second, nullptr, 0, 0));
  EXPECT(cuCtxEnablePeerAccess(context, 0) == CUDA_ERROR_PEER_ACCESS_UNSUPPORTED);
  EXPECT(cuCtxDisablePeerAccess(context) == CUDA_ERROR_PEER_ACCESS_NOT_ENABLED);
  MUST(cuMemAlloc(&b, 4096));
  MUST(cuMemsetD32(b, 3, 1024));
  MUST(cuCtxSetCurrent(context));
  MUST(cuMemcpyPeer(a, context, b, second, 4096));
  unsigned got = 0;
  MUST(cuMemcpyDtoH(&got, a + 4092, 4));
  EXPECT(got == 3);
  MUST(cuMemcpyPeer(a, context, a, context, 0));
  MUST(cuMemcpyPeerAsync(b, nullptr, a, nullptr, 4096, 0));
  MUST(cuCtxSynchronize());
  to.tell();
}

int devices() {
  int count = 0;
  MUST(cudaGetDeviceCount(&count));
  return count;
}

void fill_on(int device, unsigned* at, unsigned value) {
  MUST(cudaSetDevice(device));
  std::vector<unsigned> values(words, value);
  MUST(cudaMemcpy(at, values.data(), words * 4, cudaMemcpyHostToDevice));
}

void expect_all(const unsigned* at, unsigned value) {
  std::vector<unsigned> values(words);
  MUST(cudaMemcpy(values.data(), at, words * 4, cudaMemcpyDeviceToHost));
  for (unsigned v : values) EXPECT(v == value);
}

void on_two_devices(channel& to) {
  int can = 0;
  if (devices() > 1) MUST(cudaDeviceCanAccessPeer(&can, 0, 1));
  if (!can) {
    std::printf("one device, or no peers: left out\n");
    return to.tell();
  }
  unsigned *early, *late, *here;
  MUST(cudaSetDevice(1));
  MUST(cudaMalloc(&early, words * 4));
  fill_on(1, early, 10);
  MUST(cudaSetDevice(0));
  MUST(cudaMalloc(&here, words * 4));
  MUST(cudaMemcpyPeer(here, 0, early, 1, words * 4));  // works without access
  expect_all(here, 10);
  EXPECT(cudaDeviceDisablePeerAccess(1) == cudaErrorPeerAccessNotEnabled);
  MUST(cudaDeviceEnablePeerAccess(1, 0));
  EXPECT(cudaDeviceEnablePeerAccess(1, 0) == cudaErrorPeerAccessAlreadyEnabled);
  (void)cudaGetLastError();
  add_one<<<words / 256, 256>>>(here, early, words);
  MUST(cudaDeviceSynchronize());
  expect_all(here, 11);
  MUST(cudaSetDevice(1));
  MUST(cudaMalloc(&late, words * 4));
  MUST(cudaSetDevice(0));
  add_one<<<words / 256, 256>>>(late, here, words);  // a block made after access was enabled, written
  MUST(cudaDeviceSynchronize());
  MUST(cudaSetDevice(1));
  expect_all(late, 12);
  MUST(cudaSetDevice(0));
  MUST(cudaMemcpy(here, late, words * 4, cudaMemcpyDefault));
  expect_all(here, 12);
  MUST(cudaDeviceDisablePeerAccess(1));
  EXPECT(cudaDeviceDisablePeerAccess(1) == cudaErrorPeerAccessNotEnabled);
  (void)cudaGetLastError();
  MUST(cudaMemcpyPeer(here, 0, early, 1, words * 4));
  expect_all(here, 10);
  to.tell();
}

void share_from_the_first(channel& to) {
  const bool two = devices() > 1;
  to.put(two);
  if (!two) return;
  unsigned* data;
  MUST(cudaMalloc(&data, words * 4));
  fill_on(0, data, 20);
  cudaIpcMemHandle_t handle;
  MUST(cudaIpcGetMemHandle(&handle, data));
  to.put(handle);
  to.hear();
  expect_all(data, 22);
}

void open_on_the_second(channel& to) {
  if (!to.take<bool>()) return;
  MUST(cudaSetDevice(1));
  void* data;
  MUST(cudaIpcOpenMemHandle(&data, to.take<cudaIpcMemHandle_t>(), cudaIpcMemLazyEnablePeerAccess));
  cudaPointerAttributes about;
  MUST(cudaPointerGetAttributes(&about, data));
  unsigned* here;
  MUST(cudaMalloc(&here, words * 4));
  int can = 0;
  MUST(cudaDeviceCanAccessPeer(&can, 1, 0));
  if (can) {
    add_one<<<words / 256, 256>>>(here, static_cast<unsigned*>(data), words);
    add_one<<<words / 256, 256>>>(static_cast<unsigned*>(data), here, words);
    MUST(cudaDeviceSynchronize());
    expect_all(here, 21);
  }
  MUST(cudaIpcCloseMemHandle(data));
  to.tell();
}

void listen(channel& to) { to.hear(); }

}  // namespace

int main(int count, char** values) {
  return play("peer_access",
              {{"one_device", on_one_device, listen},
               {"two_devices", on_two_devices, listen},
               {"memory_of_another_device", share_from_the_first, open_on_the_second}},
              count, values);
}
