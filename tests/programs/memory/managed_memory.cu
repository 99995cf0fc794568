// Managed memory: one pointer for host and kernels, in several streams, through structs that hold pointers to
// more of it, as variables of the module, with prefetch, advice and attachment, and their refusals.
#include "../common.hh"

constexpr int n = 1 << 15;

__managed__ int counter = 5;
__managed__ float table[256];

__global__ void scale(int* data, int count, int by) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < count) data[i] *= by;
  if (i == 0) atomicAdd(&counter, 1);
}

struct tree {
  tree *left, *right;
  int value, sum;
};

__global__ void sum_up(tree* t) {
  t->sum = t->value;
  if (t->left) t->sum += t->left->value;
  if (t->right) t->sum += t->right->value;
}

__global__ void use_table(float* out) { out[threadIdx.x] = table[threadIdx.x] * 2; }

void turns() {
  int* data;
  MUST(cudaMallocManaged(&data, n * sizeof(int)));
  for (int round = 1; round <= 5; round++) {
    for (int i = 0; i < n; i++) data[i] = i + round;
    scale<<<n / 256, 256>>>(data, n, round);
    MUST(cudaDeviceSynchronize());
    for (int i = 0; i < n; i++) EXPECT(data[i] == (i + round) * round);
  }
  EXPECT(counter == 10);
  counter = 1;
  scale<<<1, 32>>>(data, 0, 0);
  MUST(cudaDeviceSynchronize());
  EXPECT(counter == 2);
  MUST(cudaFree(data));
}

void several_streams() {
  constexpr int streams = 4;
  cudaStream_t stream[streams];
  int* data[streams];
  for (int s = 0; s < streams; s++) {
    MUST(cudaStreamCreateWithFlags(&stream[s], cudaStreamNonBlocking));
    MUST(cudaMallocManaged(&data[s], n * sizeof(int), cudaMemAttachHost));
    MUST(cudaStreamAttachMemAsync(stream[s], data[s]));
    MUST(cudaStreamSynchronize(stream[s]));
  }
  for (int round = 0; round < 6; round++) {
    for (int s = 0; s < streams; s++) {
      MUST(cudaStreamSynchronize(stream[s]));  // only this stream's memory is touched while others work
      for (int i = 0; i < n; i++) data[s][i] = i + s;
      for (int k = 0; k < 3; k++) scale<<<n / 256, 256, 0, stream[s]>>>(data[s], n, 2);
    }
  }
  for (int s = 0; s < streams; s++) {
    MUST(cudaStreamSynchronize(stream[s]));
    for (int i = 0; i < n; i++) EXPECT(data[s][i] == (i + s) * 8);
    MUST(cudaFree(data[s]));
    MUST(cudaStreamDestroy(stream[s]));
  }
}

void pointers_to_more() {
  tree* t[3];
  for (int i = 0; i < 3; i++) {
    MUST(cudaMallocManaged(&t[i], sizeof(tree)));
    *t[i] = {nullptr, nullptr, i + 1, 0};
  }
  t[0]->left = t[1], t[0]->right = t[2];
  sum_up<<<1, 1>>>(t[0]);
  MUST(cudaDeviceSynchronize());
  EXPECT(t[0]->sum == 6);
  t[2]->value = 100;
  sum_up<<<1, 1>>>(t[0]);
  MUST(cudaDeviceSynchronize());
  EXPECT(t[0]->sum == 103);
  for (tree* each : t) MUST(cudaFree(each));
}

void copies_and_fills() {
  int *data, *device;
  std::vector<int> host(n, 3);
  MUST(cudaMallocManaged(&data, n * sizeof(int)));
  MUST(cudaMalloc(&device, n * sizeof(int)));
  MUST(cudaMemcpy(data, host.data(), n * sizeof(int), cudaMemcpyDefault));
  EXPECT(data[0] == 3 && data[n - 1] == 3);
  data[7] = 4;
  MUST(cudaMemcpy(device, data, n * sizeof(int), cudaMemcpyDefault));
  MUST(cudaMemcpy(host.data(), device, n * sizeof(int), cudaMemcpyDefault));
  EXPECT(host[6] == 3 && host[7] == 4);
  MUST(cudaMemset(data, 0, n * sizeof(int) / 2));
  MUST(cudaDeviceSynchronize());
  EXPECT(data[7] == 0 && data[n - 1] == 3);
  cudaPointerAttributes about;
  MUST(cudaPointerGetAttributes(&about, data + 5));
  EXPECT(about.type == cudaMemoryTypeManaged && about.devicePointer == data + 5 &&
         about.hostPointer == data + 5);
  MUST(cudaFree(device));
  MUST(cudaFree(data));
}

void variables() {
  float *out, *there;
  for (int i = 0; i < 256; i++) table[i] = i;
  MUST(cudaMallocManaged(&out, 256 * sizeof(float)));
  use_table<<<1, 256>>>(out);
  MUST(cudaDeviceSynchronize());
  for (int i = 0; i < 256; i++) EXPECT(out[i] == 2.0f * i);
  MUST(cudaGetSymbolAddress(reinterpret_cast<void**>(&there), table));
  EXPECT(there == table);
  MUST(cudaFree(out));
}

/// Prefetch and advice succeed on devices that can use the memory together with the host; others refuse them,
/// as the driver does.
void hints() {
  int *data, *device;
  MUST(cudaMallocManaged(&data, n * sizeof(int)));
  MUST(cudaMalloc(&device, n * sizeof(int)));
  cudaMemLocation here{cudaMemLocationTypeDevice, 0}, host{cudaMemLocationTypeHost, 0},
      wrong{cudaMemLocationTypeDevice, 99};
  for (int i = 0; i < n; i++) data[i] = i;
  const cudaError_t taken = cudaMemPrefetchAsync(data, n * sizeof(int), here, 0);
  EXPECT(taken == cudaSuccess || taken == cudaErrorInvalidDevice);
  cudaGetLastError();
  if (taken == cudaSuccess) {
    scale<<<n / 256, 256>>>(data, n, 2);
    MUST(cudaMemPrefetchAsync(data, n * sizeof(int), host, 0));
    MUST(cudaDeviceSynchronize());
    for (int i = 0; i < n; i++) EXPECT(data[i] == 2 * i);
    MUST(cudaMemAdvise(data, n * sizeof(int), cudaMemAdviseSetReadMostly, here));
    int mostly = 0, last = 0;
    MUST(cudaMemRangeGetAttribute(&mostly, sizeof mostly, cudaMemRangeAttributeReadMostly, data,
                                  n * sizeof(int)));
    EXPECT(mostly == 1);
    MUST(cudaMemRangeGetAttribute(&last, sizeof last, cudaMemRangeAttributeLastPrefetchLocation, data,
                                  n * sizeof(int)));
    EXPECT(last == cudaCpuDeviceId);
    MUST(cudaMemAdvise(data, n * sizeof(int), cudaMemAdviseUnsetReadMostly, here));
    MUST(cudaMemAdvise(data, n * sizeof(int), cudaMemAdviseSetPreferredLocation, here));
    MUST(cudaMemRangeGetAttribute(&last, sizeof last, cudaMemRangeAttributePreferredLocation, data,
                                  n * sizeof(int)));
    EXPECT(last == 0);
  }
  EXPECT(cudaMemPrefetchAsync(data, n * sizeof(int), wrong, 0) == cudaErrorInvalidDevice);
  EXPECT(cudaMemPrefetchAsync(device, n * sizeof(int), here, 0) != cudaSuccess);
  EXPECT(cudaMemPrefetchAsync(data, 0, here, 0) == cudaErrorInvalidValue);
  EXPECT(cudaMemAdvise(device, n * sizeof(int), cudaMemAdviseSetReadMostly, here) != cudaSuccess);
  void* none = nullptr;
  EXPECT(cudaMallocManaged(&none, 64, 0) == cudaErrorInvalidValue);
  cudaGetLastError();
  MUST(cudaFree(device));
  MUST(cudaFree(data));
}

int main() {
  int can = 0;
  MUST(cudaDeviceGetAttribute(&can, cudaDevAttrManagedMemory, 0));
  EXPECT(can == 1);
  turns();
  several_streams();
  pointers_to_more();
  copies_and_fills();
  variables();
  hints();
  return pass("managed_memory");
}
