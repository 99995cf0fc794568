// Surface objects: reads and writes of every width and geometry, accesses outside of the surface, and that a
// texture sees what a surface wrote.
#include <cuda_runtime.h>

#include "common.hh"

namespace {

__global__ void fill_2d(cudaSurfaceObject_t s, int width, int height) {
  const int x = blockIdx.x * blockDim.x + threadIdx.x, y = blockIdx.y * blockDim.y + threadIdx.y;
  if (x < width && y < height) surf2Dwrite(make_float4(x, y, x + y, x * y), s, x * 16, y);
}

__global__ void double_2d(cudaSurfaceObject_t s, int width, int height) {
  const int x = blockIdx.x * blockDim.x + threadIdx.x, y = blockIdx.y * blockDim.y + threadIdx.y;
  if (x >= width || y >= height) return;
  float4 v = surf2Dread<float4>(s, x * 16, y);
  v.x *= 2, v.y *= 2, v.z *= 2, v.w *= 2;
  surf2Dwrite(v, s, x * 16, y);
}

template <class T>
__global__ void in_a_row(cudaSurfaceObject_t s, int width, T* out) {
  const int x = threadIdx.x;
  surf1Dwrite(static_cast<T>(3 * x + 1), s, x * static_cast<int>(sizeof(T)));
  __syncthreads();
  out[x] = surf1Dread<T>(s, (width - 1 - x) * static_cast<int>(sizeof(T)));
}

__global__ void solids(cudaSurfaceObject_t s3, cudaSurfaceObject_t s1l, cudaSurfaceObject_t s2l,
                       cudaSurfaceObject_t cube, int* out) {
  const int x = threadIdx.x, y = threadIdx.y, z = threadIdx.z;
  const int v = 100 * z + 10 * y + x;
  surf3Dwrite(v, s3, 4 * x, y, z);
  surf2DLayeredwrite(v + 1000, s2l, 4 * x, y, z);
  surfCubemapwrite(v + 2000, cube, 4 * x, y, z);
  if (y == 0) surf1DLayeredwrite(v + 3000, s1l, 4 * x, z);
  __syncthreads();
  int* at = out + 4 * (((z * 4) + y) * 4 + x);
  at[0] = surf3Dread<int>(s3, 4 * x, y, z);
  at[1] = surf2DLayeredread<int>(s2l, 4 * x, y, z);
  at[2] = surfCubemapread<int>(cube, 4 * x, y, z);
  at[3] = surf1DLayeredread<int>(s1l, 4 * x, z);
}

__global__ void beyond(cudaSurfaceObject_t s, int* out) {
  surf2Dwrite(77, s, 4 * 100, 0, cudaBoundaryModeZero);     // dropped
  surf2Dwrite(78, s, 4 * 100, 100, cudaBoundaryModeClamp);  // the last texel
  out[0] = surf2Dread<int>(s, -4, 0, cudaBoundaryModeZero);
  out[1] = surf2Dread<int>(s, -4, -9, cudaBoundaryModeClamp);
  out[2] = surf2Dread<int>(s, 4 * 1000, 1000, cudaBoundaryModeClamp);
}

__global__ void trap(cudaSurfaceObject_t s) { surf2Dwrite(1, s, 4 * 100, 0); }

template <class T>
__global__ void shift(cudaSurfaceObject_t s) {
  const int x = threadIdx.x, bytes = static_cast<int>(sizeof(T));
  const T v = surf2Dread<T>(s, x * bytes, 0);
  surf2Dwrite(v, s, x * bytes, 1);
}

__global__ void look(cudaTextureObject_t t, float* out) {
  out[threadIdx.x] = tex2D<float4>(t, threadIdx.x + 0.5f, 2.5f).z;
}

struct surface {
  cudaArray_t array = nullptr;
  cudaSurfaceObject_t object = 0;
  surface(const cudaChannelFormatDesc& format, cudaExtent size, unsigned flags = 0) {
    MUST(cudaMalloc3DArray(&array, &format, size, flags | cudaArraySurfaceLoadStore));
    cudaResourceDesc resource = {};
    resource.resType = cudaResourceTypeArray, resource.res.array.array = array;
    MUST(cudaCreateSurfaceObject(&object, &resource));
  }
  ~surface() {
    cudaDestroySurfaceObject(object);
    cudaFreeArray(array);
  }
};

void two_dimensions() {
  const int width = 70, height = 33;
  const surface s(cudaCreateChannelDesc<float4>(), make_cudaExtent(width, height, 0));
  const dim3 grid(5, 3), block(16, 16);
  fill_2d<<<grid, block>>>(s.object, width, height);
  double_2d<<<grid, block>>>(s.object, width, height);
  std::vector<float4> out(width * height);
  MUST(cudaMemcpy2DFromArray(out.data(), width * 16, s.array, 0, 0, width * 16, height,
                             cudaMemcpyDeviceToHost));
  for (int y = 0; y < height; ++y) {
    for (int x = 0; x < width; ++x) {
      const float4 v = out[y * width + x];
      EXPECT(v.x == 2 * x && v.y == 2 * y && v.z == 2 * (x + y) && v.w == 2 * x * y);
    }
  }
  cudaResourceDesc resource = {};
  resource.resType = cudaResourceTypeArray, resource.res.array.array = s.array;
  cudaTextureDesc d = {};
  cudaTextureObject_t t = 0;
  float* seen = nullptr;
  MUST(cudaCreateTextureObject(&t, &resource, &d, nullptr));
  MUST(cudaMalloc(&seen, width * 4));
  look<<<1, width>>>(t, seen);
  std::vector<float> z(width);
  MUST(cudaMemcpy(z.data(), seen, width * 4, cudaMemcpyDeviceToHost));
  for (int x = 0; x < width; ++x) EXPECT(z[x] == 2 * (x + 2));
  MUST(cudaDestroyTextureObject(t));
  MUST(cudaFree(seen));
}

template <class T>
void one_dimension() {
  const int width = 64;
  const surface s(cudaCreateChannelDesc<T>(), make_cudaExtent(width, 0, 0));
  T* device = nullptr;
  std::vector<T> out(width);
  MUST(cudaMalloc(&device, width * sizeof(T)));
  in_a_row<T><<<1, width>>>(s.object, width, device);
  MUST(cudaMemcpy(out.data(), device, width * sizeof(T), cudaMemcpyDeviceToHost));
  for (int x = 0; x < width; ++x) EXPECT(out[x] == static_cast<T>(3 * (width - 1 - x) + 1));
  MUST(cudaFree(device));
}

void three_dimensions() {
  const cudaChannelFormatDesc format = cudaCreateChannelDesc<int>();
  const surface s3(format, make_cudaExtent(4, 4, 6)), s1(format, make_cudaExtent(4, 0, 6), cudaArrayLayered),
      s2(format, make_cudaExtent(4, 4, 6), cudaArrayLayered),
      cube(format, make_cudaExtent(4, 4, 6), cudaArrayCubemap);
  int* device = nullptr;
  std::vector<int> out(4 * 4 * 4 * 6);
  MUST(cudaMalloc(&device, out.size() * 4));
  solids<<<1, dim3(4, 4, 6)>>>(s3.object, s1.object, s2.object, cube.object, device);
  MUST(cudaMemcpy(out.data(), device, out.size() * 4, cudaMemcpyDeviceToHost));
  for (int z = 0; z < 6; ++z) {
    for (int y = 0; y < 4; ++y) {
      for (int x = 0; x < 4; ++x) {
        const int* at = &out[4 * ((z * 4 + y) * 4 + x)];
        const int v = 100 * z + 10 * y + x;
        EXPECT(at[0] == v && at[1] == v + 1000 && at[2] == v + 2000 && at[3] == 100 * z + x + 3000);
      }
    }
  }
  MUST(cudaFree(device));
}

void outside() {
  const surface s(cudaCreateChannelDesc<int>(), make_cudaExtent(8, 4, 0));
  std::vector<int> in(32);
  for (int i = 0; i < 32; ++i) in[i] = i + 1;
  MUST(cudaMemcpy2DToArray(s.array, 0, 0, in.data(), 32, 32, 4, cudaMemcpyHostToDevice));
  int* device = nullptr;
  int out[3] = {};
  MUST(cudaMalloc(&device, 12));
  beyond<<<1, 1>>>(s.object, device);
  MUST(cudaMemcpy(out, device, 12, cudaMemcpyDeviceToHost));
  EXPECT(out[0] == 0 && out[1] == 1 && out[2] == 78);
  MUST(cudaMemcpy2DFromArray(in.data(), 32, s.array, 0, 0, 32, 4, cudaMemcpyDeviceToHost));
  EXPECT(in[31] == 78 && in[30] == 31 && in[7] == 8);
  MUST(cudaFree(device));
}

/// Texels of every size are read and written whole.
template <class T>
void copies(const cudaChannelFormatDesc& format) {
  const surface s(format, make_cudaExtent(32, 2, 0));
  numbers random;
  std::vector<unsigned char> in(32 * sizeof(T)), out(32 * sizeof(T));
  for (auto& b : in) b = static_cast<unsigned char>(random.next());
  const std::size_t row = in.size();
  MUST(cudaMemcpy2DToArray(s.array, 0, 0, in.data(), row, row, 1, cudaMemcpyHostToDevice));
  shift<T><<<1, 32>>>(s.object);
  MUST(cudaMemcpy2DFromArray(out.data(), row, s.array, 0, 1, row, 1, cudaMemcpyDeviceToHost));
  EXPECT(in == out);
}

}  // namespace

/// No driver requires cudaArraySurfaceLoadStore, or refuses an invalid object to destroy.
void without_a_flag() {
  const cudaChannelFormatDesc texel = cudaCreateChannelDesc<float4>();
  cudaMipmappedArray_t levels;
  cudaArray_t level;
  MUST(cudaMallocMipmappedArray(&levels, &texel, make_cudaExtent(16, 16, 0), 5));
  MUST(cudaGetMipmappedArrayLevel(&level, levels, 1));
  cudaResourceDesc resource{};
  resource.resType = cudaResourceTypeArray;
  resource.res.array.array = level;
  cudaSurfaceObject_t s = 0;
  MUST(cudaCreateSurfaceObject(&s, &resource));
  fill_2d<<<1, dim3(8, 8)>>>(s, 8, 8);
  std::vector<float> seen(4 * 64);
  MUST(cudaMemcpy2DFromArray(seen.data(), 128, level, 0, 0, 128, 8, cudaMemcpyDeviceToHost));
  EXPECT(seen[4 * (3 * 8 + 5)] == 5 && seen[4 * (3 * 8 + 5) + 3] == 15);
  MUST(cudaDestroySurfaceObject(s));
  MUST(cudaDestroySurfaceObject(0));
  MUST(cudaDestroyTextureObject(0));
  MUST(cudaFreeMipmappedArray(levels));
}

int main() {
  two_dimensions();
  without_a_flag();
  one_dimension<unsigned char>();
  one_dimension<short>();
  one_dimension<int>();
  one_dimension<float>();
  three_dimensions();
  outside();
  copies<unsigned char>(cudaCreateChannelDesc<unsigned char>());
  copies<uchar2>(cudaCreateChannelDesc<uchar2>());
  copies<uchar4>(cudaCreateChannelDesc<uchar4>());
  copies<ushort2>(cudaCreateChannelDesc<ushort2>());
  copies<ushort4>(cudaCreateChannelDesc<ushort4>());
  copies<int2>(cudaCreateChannelDesc<int2>());
  copies<long long>(cudaCreateChannelDesc<int2>());
  copies<float4>(cudaCreateChannelDesc<float4>());
  // last: it ends the context
  const surface s(cudaCreateChannelDesc<int>(), make_cudaExtent(8, 4, 0));
  trap<<<1, 1>>>(s.object);
  EXPECT(cudaDeviceSynchronize() != cudaSuccess);
  return pass("surfaces");
}
