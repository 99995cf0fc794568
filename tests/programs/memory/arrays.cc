// CUDA arrays through the driver API: one, two and three dimensions, layers, mipmap levels; copies between
// arrays, device and host in every direction; descriptions; refusals.
#include <cuda.h>

#include <cstring>

#include "../common.hh"

namespace {

std::vector<float> ramp(std::size_t n, float first) {
  std::vector<float> v(n);
  for (std::size_t i = 0; i < n; ++i) v[i] = first + static_cast<float>(i);
  return v;
}

CUarray make(std::size_t width, std::size_t height, std::size_t depth, unsigned channels = 1,
             unsigned flags = 0) {
  CUDA_ARRAY3D_DESCRIPTOR d = {};
  d.Width = width, d.Height = height, d.Depth = depth;
  d.Format = CU_AD_FORMAT_FLOAT, d.NumChannels = channels, d.Flags = flags;
  CUarray array = nullptr;
  MUST(cuArray3DCreate(&array, &d));
  return array;
}

CUDA_MEMCPY3D box(std::size_t width, std::size_t height, std::size_t depth) {
  CUDA_MEMCPY3D m = {};
  m.WidthInBytes = width, m.Height = height, m.Depth = depth;
  return m;
}
void from_host(CUDA_MEMCPY3D& m, const void* p, std::size_t pitch, std::size_t rows) {
  m.srcMemoryType = CU_MEMORYTYPE_HOST, m.srcHost = p, m.srcPitch = pitch, m.srcHeight = rows;
}
void to_host(CUDA_MEMCPY3D& m, void* p, std::size_t pitch, std::size_t rows) {
  m.dstMemoryType = CU_MEMORYTYPE_HOST, m.dstHost = p, m.dstPitch = pitch, m.dstHeight = rows;
}
void from_array(CUDA_MEMCPY3D& m, CUarray a) { m.srcMemoryType = CU_MEMORYTYPE_ARRAY, m.srcArray = a; }
void to_array(CUDA_MEMCPY3D& m, CUarray a) { m.dstMemoryType = CU_MEMORYTYPE_ARRAY, m.dstArray = a; }

void one_dimension() {
  const std::vector<float> in = ramp(1000, 1);
  std::vector<float> out(1000, -1);
  CUarray a = make(1000, 0, 0), b = make(1000, 0, 0);
  CUdeviceptr device = 0;
  MUST(cuMemAlloc(&device, 4000));
  MUST(cuMemcpyHtoA(a, 0, in.data(), 4000));
  MUST(cuMemcpyHtoA(a, 400, in.data(), 40));
  MUST(cuMemcpyAtoH(out.data(), a, 0, 4000));
  EXPECT(out[99] == 100 && out[100] == 1 && out[109] == 10 && out[110] == 111 && out[999] == 1000);
  MUST(cuMemcpyAtoA(b, 800, a, 400, 3200));
  MUST(cuMemcpyAtoD(device, b, 800, 3200));
  MUST(cuMemcpyDtoH(out.data(), device, 3200));
  EXPECT(out[0] == 1 && out[9] == 10 && out[10] == 111);
  MUST(cuMemcpyDtoA(a, 0, device, 40));
  MUST(cuMemcpyAtoH(out.data(), a, 36, 8));
  EXPECT(out[0] == 10 && out[1] == 11);
  // in a stream, page-locked
  CUstream stream = nullptr;
  float* pinned = nullptr;
  MUST(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
  MUST(cuMemHostAlloc(reinterpret_cast<void**>(&pinned), 8000, 0));
  for (int i = 0; i < 1000; ++i) pinned[i] = static_cast<float>(3 * i);
  MUST(cuMemcpyHtoAAsync(b, 0, pinned, 4000, stream));
  MUST(cuMemcpyAtoHAsync(pinned + 1000, b, 0, 4000, stream));
  MUST(cuStreamSynchronize(stream));
  EXPECT(std::memcmp(pinned, pinned + 1000, 4000) == 0);
  EXPECT(cuMemcpyHtoA(a, 3996, in.data(), 8) == CUDA_ERROR_INVALID_VALUE);
  MUST(cuMemFreeHost(pinned));
  MUST(cuStreamDestroy(stream));
  MUST(cuMemFree(device));
  MUST(cuArrayDestroy(a));
  MUST(cuArrayDestroy(b));
}

void two_dimensions() {
  const std::size_t width = 40, height = 30;
  const std::vector<float> in = ramp((width + 1) * height, 0);  // room for the copy that is refused
  CUarray a = make(width, height, 0), b = make(width, height, 0);
  CUDA_MEMCPY2D m = {};
  m.srcMemoryType = CU_MEMORYTYPE_HOST, m.srcHost = in.data(), m.srcPitch = width * 4;
  m.dstMemoryType = CU_MEMORYTYPE_ARRAY, m.dstArray = a;
  m.WidthInBytes = width * 4, m.Height = height;
  MUST(cuMemcpy2D(&m));
  // a part of one array into another place of the other
  CUDA_MEMCPY2D part = {};
  part.srcMemoryType = part.dstMemoryType = CU_MEMORYTYPE_ARRAY;
  part.srcArray = a, part.srcXInBytes = 20, part.srcY = 3;
  part.dstArray = b, part.dstXInBytes = 80, part.dstY = 10;
  part.WidthInBytes = 60, part.Height = 9;
  MUST(cuMemcpy2DUnaligned(&part));
  CUdeviceptr device = 0;
  std::size_t pitch = 0;
  MUST(cuMemAllocPitch(&device, &pitch, 60, 9, 4));
  part.srcArray = b, part.srcXInBytes = 80, part.srcY = 10;
  part.dstMemoryType = CU_MEMORYTYPE_DEVICE, part.dstDevice = device, part.dstPitch = pitch;
  part.dstXInBytes = part.dstY = 0;
  MUST(cuMemcpy2DAsync(&part, nullptr));
  std::vector<float> out(15 * 9);
  CUDA_MEMCPY2D back = {};
  back.srcMemoryType = CU_MEMORYTYPE_UNIFIED, back.srcDevice = device, back.srcPitch = pitch;
  back.dstMemoryType = CU_MEMORYTYPE_HOST, back.dstHost = out.data(), back.dstPitch = 60;
  back.WidthInBytes = 60, back.Height = 9;
  MUST(cuMemcpy2D(&back));
  for (std::size_t y = 0; y < 9; ++y) {
    for (std::size_t x = 0; x < 15; ++x) EXPECT(out[y * 15 + x] == in[(y + 3) * width + x + 5]);
  }
  m.WidthInBytes = width * 4 + 4;
  m.srcPitch += 4;
  EXPECT(cuMemcpy2D(&m) == CUDA_ERROR_INVALID_VALUE);  // wider than the array
  m.WidthInBytes = width * 4, m.dstY = 1;
  EXPECT(cuMemcpy2D(&m) == CUDA_ERROR_INVALID_VALUE);  // lower than the array
  CUDA_ARRAY_DESCRIPTOR d = {};
  MUST(cuArrayGetDescriptor(&d, a));
  EXPECT(d.Width == width && d.Height == height && d.Format == CU_AD_FORMAT_FLOAT && d.NumChannels == 1);
  MUST(cuMemFree(device));
  MUST(cuArrayDestroy(a));
  MUST(cuArrayDestroy(b));
}

void three_dimensions(unsigned flags) {
  const std::size_t width = 12, height = 7, depth = 5;
  const std::vector<float> in = ramp(width * height * depth * 2, 0);
  CUarray a = make(width, height, depth, 2, flags);
  CUDA_MEMCPY3D m = box(width * 8, height, depth);
  from_host(m, in.data(), width * 8, height);
  to_array(m, a);
  MUST(cuMemcpy3D(&m));
  std::vector<float> out(6 * 3 * 2 * 2, -1);
  CUDA_MEMCPY3D part = box(6 * 8, 3, 2);
  from_array(part, a);
  part.srcXInBytes = 16, part.srcY = 4, part.srcZ = 3;
  to_host(part, out.data(), 6 * 8, 3);
  MUST(cuMemcpy3D(&part));
  for (std::size_t z = 0; z < 2; ++z) {
    for (std::size_t y = 0; y < 3; ++y) {
      for (std::size_t x = 0; x < 12; ++x)
        EXPECT(out[(z * 3 + y) * 12 + x] == in[((z + 3) * height + y + 4) * width * 2 + x + 4]);
    }
  }
  CUDA_ARRAY3D_DESCRIPTOR d = {};
  MUST(cuArray3DGetDescriptor(&d, a));
  EXPECT(d.Width == width && d.Height == height && d.Depth == depth && d.NumChannels == 2 &&
         d.Flags == flags);
  part.srcZ = 4;
  EXPECT(cuMemcpy3D(&part) == CUDA_ERROR_INVALID_VALUE);
  MUST(cuArrayDestroy(a));
}

void levels() {
  CUDA_ARRAY3D_DESCRIPTOR d = {};
  d.Width = 16, d.Height = 8, d.Format = CU_AD_FORMAT_FLOAT, d.NumChannels = 1;
  CUmipmappedArray mipmap = nullptr;
  MUST(cuMipmappedArrayCreate(&mipmap, &d, 5));
  for (unsigned level = 0; level < 5; ++level) {
    CUarray array = nullptr, again = nullptr;
    MUST(cuMipmappedArrayGetLevel(&array, mipmap, level));
    MUST(cuMipmappedArrayGetLevel(&again, mipmap, level));
    CUDA_ARRAY3D_DESCRIPTOR of_level = {};
    MUST(cuArray3DGetDescriptor(&of_level, array));
    const std::size_t width = 16 >> level, height = level < 3 ? 8 >> level : 1;
    EXPECT(of_level.Width == width && of_level.Height == height);
    const std::vector<float> in = ramp(width * height, static_cast<float>(1000 * level));
    CUDA_MEMCPY3D m = box(width * 4, height, 1);
    from_host(m, in.data(), width * 4, height);
    to_array(m, array);
    MUST(cuMemcpy3D(&m));
  }
  for (unsigned level = 0; level < 5; ++level) {  // no level has overwritten another
    CUarray array = nullptr;
    MUST(cuMipmappedArrayGetLevel(&array, mipmap, level));
    const std::size_t width = 16 >> level, height = level < 3 ? 8 >> level : 1;
    std::vector<float> out(width * height);
    CUDA_MEMCPY3D m = box(width * 4, height, 1);
    from_array(m, array);
    to_host(m, out.data(), width * 4, height);
    MUST(cuMemcpy3D(&m));
    EXPECT(out == ramp(width * height, static_cast<float>(1000 * level)));
  }
  CUarray none = nullptr;
  EXPECT(cuMipmappedArrayGetLevel(&none, mipmap, 5) == CUDA_ERROR_INVALID_VALUE);
  MUST(cuMipmappedArrayDestroy(mipmap));
}

void refused() {
  CUDA_ARRAY3D_DESCRIPTOR d = {};
  CUarray array = nullptr;
  d.Format = CU_AD_FORMAT_FLOAT, d.NumChannels = 1;
  EXPECT(cuArray3DCreate(&array, &d) == CUDA_ERROR_INVALID_VALUE);  // no width
  d.Width = 16, d.NumChannels = 3;
  EXPECT(cuArray3DCreate(&array, &d) == CUDA_ERROR_INVALID_VALUE);
  d.NumChannels = 1, d.Height = 8, d.Depth = 6, d.Flags = CUDA_ARRAY3D_CUBEMAP;
  EXPECT(cuArray3DCreate(&array, &d) == CUDA_ERROR_INVALID_VALUE);  // faces are square
}

}  // namespace

int main() {
  CUdevice device = 0;
  CUcontext context = nullptr;
  MUST(cuInit(0));
  MUST(cuDeviceGet(&device, 0));
  MUST(cuDevicePrimaryCtxRetain(&context, device));
  MUST(cuCtxSetCurrent(context));
  one_dimension();
  two_dimensions();
  three_dimensions(0);
  three_dimensions(CUDA_ARRAY3D_LAYERED);
  levels();
  refused();
  MUST(cuDevicePrimaryCtxRelease(device));
  return pass("arrays");
}
