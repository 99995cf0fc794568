// Compiled, never run: what nvcc makes of it seeds the fuzz targets of containers, PTX and machine code.
__constant__ int factors[4] = {1, 2, 3, 4};
__device__ float table[16];

__global__ void __launch_bounds__(256) work(int* data, float2 pair, int n) {
  extern __shared__ int shared[];
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  shared[threadIdx.x] = i < n ? data[i] : 0;
  __syncthreads();
  int value = __shfl_xor_sync(~0u, shared[threadIdx.x], 1) * factors[i & 3];
  if (value > 3) atomicAdd(&table[value & 15], pair.x * pair.y);
  if (i < n) data[i] = value;
}
