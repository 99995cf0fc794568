// Arrays, boxes, textures and surfaces between the front-end and a back-end process: every call travels, the
// bytes of rows land where they belong and nowhere else, and live objects are rebuilt with the values that
// kernels hold.
#include <gtest/gtest.h>
#include <signal.h>

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

void begin(const server& s) {
  boot(s);
  CUcontext context = nullptr;
  ASSERT_EQ(ends::cuInit(0), CUDA_SUCCESS);
  ASSERT_EQ(ends::cuDevicePrimaryCtxRetain(&context, 0), CUDA_SUCCESS);
  ASSERT_EQ(ends::cuCtxSetCurrent(context), CUDA_SUCCESS);
}

CUDA_ARRAY3D_DESCRIPTOR floats(std::size_t width, std::size_t height, std::size_t depth, unsigned flags = 0) {
  return {width, height, depth, CU_AD_FORMAT_FLOAT, 1, flags};
}

CUDA_MEMCPY3D between(CUdeviceptr to, CUdeviceptr from, std::size_t pitch, std::size_t width,
                      std::size_t height) {
  CUDA_MEMCPY3D m{};
  m.srcMemoryType = m.dstMemoryType = CU_MEMORYTYPE_UNIFIED;
  m.srcDevice = from, m.dstDevice = to, m.srcPitch = m.dstPitch = pitch;
  m.WidthInBytes = width, m.Height = height, m.Depth = 1;
  return m;
}

CUdeviceptr address(const void* p) { return reinterpret_cast<CUdeviceptr>(p); }

/// Copies boxes into device memory by each flavour and out by each flavour.
void boxes_round_trip(const server& s) {
  begin(s);
  constexpr std::size_t pitch = 40, width = 24, height = 9;
  CUdeviceptr device = 0;
  CUstream stream = nullptr;
  void* pinned = nullptr;
  ASSERT_EQ(ends::cuMemAlloc_v2(&device, pitch * height), CUDA_SUCCESS);
  ASSERT_EQ(ends::cuMemHostAlloc(&pinned, pitch * height, 0), CUDA_SUCCESS);
  ASSERT_EQ(cuda::remote<opcode::cuStreamCreate>(&stream, 0u), CUDA_SUCCESS);
  std::vector<unsigned char> in(pitch * height), out(pitch * height, 0xaa);
  for (std::size_t i = 0; i < in.size(); ++i) in[i] = static_cast<unsigned char>(i * 31 + 7);
  const auto right = [&](const unsigned char* got) {
    for (std::size_t i = 0; i < in.size(); ++i) {
      if (got[i] != (i % pitch < width ? in[i] : 0xaa)) return false;
    }
    return true;
  };
  const CUDA_MEMCPY3D there = between(device, address(in.data()), pitch, width, height),
                      back = between(address(out.data()), device, pitch, width, height);
  ASSERT_EQ(ends::cuMemcpy3D_v2(&there), CUDA_SUCCESS);
  ASSERT_EQ(ends::cuMemcpy3D_v2(&back), CUDA_SUCCESS);
  EXPECT_TRUE(right(out.data()));
  for (const auto copy : {&ends::cuMemcpy3DAsync_v2, &ends::cuMemcpy3DAsync_v2_ptsz}) {
    std::memset(pinned, 0xaa, pitch * height);
    const CUDA_MEMCPY3D later = between(address(pinned), device, pitch, width, height);
    ASSERT_EQ(copy(&there, stream), CUDA_SUCCESS);
    ASSERT_EQ(copy(&later, stream), CUDA_SUCCESS);
    ASSERT_EQ(cuda::remote<opcode::cuStreamSynchronize>(stream), CUDA_SUCCESS);
    EXPECT_TRUE(right(static_cast<unsigned char*>(pinned)));
  }
  CUDA_MEMCPY3D wrong = there;
  wrong = there, wrong.dstPitch = width - 1;
  EXPECT_EQ(ends::cuMemcpy3D_v2(&wrong), CUDA_ERROR_INVALID_VALUE);
  wrong = there, wrong.srcMemoryType = static_cast<CUmemorytype>(9);
  EXPECT_EQ(ends::cuMemcpy3D_v2(&wrong), CUDA_ERROR_INVALID_VALUE);
  EXPECT_EQ(ends::cuMemcpy3DAsync_v2(&there, reinterpret_cast<CUstream>(0x1230)), CUDA_ERROR_INVALID_HANDLE);
  EXPECT_EQ(ends::cuMemcpy3D_v2(nullptr), CUDA_ERROR_INVALID_VALUE);
  wrong = there, wrong.Depth = 0;
  EXPECT_EQ(ends::cuMemcpy3D_v2(&wrong), CUDA_SUCCESS);
}

TEST(arrays, boxes_land_between_the_pitches_on_the_cpu_device) {
  const server s("cpu");
  EXPECT_TRUE(in_fresh_process([&] { boxes_round_trip(s); }));
}

/// Calls every function of arrays and objects once; the mock accepts all of them.
TEST(arrays, every_call_travels) {
  const server s("mock");
  EXPECT_TRUE(in_fresh_process([&] {
    begin(s);
    CUarray array = nullptr, other = nullptr, level = nullptr;
    CUmipmappedArray mipmap = nullptr;
    CUdeviceptr device = 0;
    const CUDA_ARRAY3D_DESCRIPTOR about = floats(64, 0, 0), flat = floats(64, 64, 0);
    ASSERT_EQ(ends::cuMemAlloc_v2(&device, 4096), CUDA_SUCCESS);
    ASSERT_EQ(ends::cuArray3DCreate_v2(&array, &about), CUDA_SUCCESS);
    ASSERT_EQ(ends::cuArray3DCreate_v2(&other, &about), CUDA_SUCCESS);
    ASSERT_EQ(ends::cuMipmappedArrayCreate(&mipmap, &flat, 99), CUDA_SUCCESS);
    ASSERT_EQ(ends::cuMipmappedArrayGetLevel(&level, mipmap, 6), CUDA_SUCCESS);
    EXPECT_EQ(ends::cuMipmappedArrayGetLevel(&level, mipmap, 7), CUDA_ERROR_INVALID_VALUE);
    EXPECT_EQ(ends::cuArrayDestroy(level), CUDA_SUCCESS);
    std::vector<float> host(64, 1);
    EXPECT_EQ(ends::cuMemcpyHtoA_v2(array, 0, host.data(), 256), CUDA_SUCCESS);
    EXPECT_EQ(ends::cuMemcpyAtoH_v2(host.data(), array, 0, 256), CUDA_SUCCESS);
    EXPECT_EQ(host[63], 0.0f);  // the mock's arrays are empty, so the bytes have come from there
    EXPECT_EQ(cuda::remote<opcode::cuMemcpyDtoA_v2>(array, std::size_t{0}, device, std::size_t{64}),
              CUDA_SUCCESS);
    EXPECT_EQ(cuda::remote<opcode::cuMemcpyAtoD_v2>(device, array, std::size_t{0}, std::size_t{64}),
              CUDA_SUCCESS);
    EXPECT_EQ(
        cuda::remote<opcode::cuMemcpyAtoA_v2>(array, std::size_t{0}, other, std::size_t{0}, std::size_t{64}),
        CUDA_SUCCESS);
    CUDA_ARRAY_MEMORY_REQUIREMENTS needs{};
    EXPECT_EQ(cuda::remote<opcode::cuArrayGetMemoryRequirements>(&needs, array, 0), CUDA_SUCCESS);
    CUDA_ARRAY_SPARSE_PROPERTIES sparse{};
    EXPECT_EQ(ends::cuArrayGetSparseProperties(&sparse, array), CUDA_SUCCESS);
    EXPECT_EQ(ends::cuMipmappedArrayGetSparseProperties(&sparse, mipmap), CUDA_SUCCESS);
    CUarray plane = nullptr;
    EXPECT_EQ(ends::cuArrayGetPlane(&plane, array, 0), CUDA_SUCCESS);
    CUDA_RESOURCE_DESC resource{};
    resource.resType = CU_RESOURCE_TYPE_MIPMAPPED_ARRAY, resource.res.mipmap.hMipmappedArray = mipmap;
    CUDA_TEXTURE_DESC sampling{}, told{};
    sampling.maxAnisotropy = 4, sampling.borderColor[2] = 0.5f;
    CUDA_RESOURCE_VIEW_DESC view{}, seen{};
    view.lastMipmapLevel = 3;
    CUtexObject texture = 0;
    CUsurfObject surface = 0;
    ASSERT_EQ(ends::cuTexObjectCreate(&texture, &resource, &sampling, &view), CUDA_SUCCESS);
    EXPECT_NE(texture, 0u);
    EXPECT_EQ(ends::cuTexObjectGetTextureDesc(&told, texture), CUDA_SUCCESS);
    EXPECT_EQ(told.borderColor[2], 0.5f);
    EXPECT_EQ(ends::cuTexObjectGetResourceViewDesc(&seen, texture), CUDA_SUCCESS);
    EXPECT_EQ(seen.lastMipmapLevel, 3u);
    resource = {};
    resource.resType = CU_RESOURCE_TYPE_ARRAY, resource.res.array.hArray = array;
    ASSERT_EQ(ends::cuSurfObjectCreate(&surface, &resource), CUDA_SUCCESS);
    EXPECT_EQ(ends::cuTexObjectDestroy(surface), CUDA_SUCCESS) << "nothing, and no error";
    EXPECT_EQ(ends::cuSurfObjectDestroy(surface), CUDA_SUCCESS);
    EXPECT_EQ(ends::cuTexObjectDestroy(texture), CUDA_SUCCESS);
    EXPECT_EQ(ends::cuTexObjectDestroy(texture), CUDA_SUCCESS) << "again";
    EXPECT_EQ(ends::cuSurfObjectDestroy(0), CUDA_SUCCESS);
    EXPECT_EQ(ends::cuArrayDestroy(array), CUDA_SUCCESS);
    EXPECT_EQ(ends::cuMemcpyAtoH_v2(host.data(), array, 0, 256), CUDA_ERROR_INVALID_HANDLE);
    EXPECT_EQ(ends::cuMipmappedArrayDestroy(mipmap), CUDA_SUCCESS);
    CUDA_ARRAY3D_DESCRIPTOR none{};
    EXPECT_EQ(ends::cuArray3DGetDescriptor_v2(&none, level), CUDA_ERROR_INVALID_HANDLE);
  }));
}

constexpr char sampling_ptx[] = R"(
.version 7.0
.target sm_70
.address_size 64
.visible .entry look(.param .u64 t, .param .u64 out) {
  .reg .f32 %f<6>; .reg .b64 %d<3>;
  ld.param.u64 %d1, [t]; ld.param.u64 %d2, [out];
  mov.f32 %f1, 0f40200000;
  tex.2d.v4.f32.f32 {%f2, %f3, %f4, %f5}, [%d1, {%f1, %f1}];
  st.global.f32 [%d2], %f2; ret;
}
)";

TEST(arrays, kernels_find_their_textures_again_after_a_rebuild) {
  const server s("cpu");
  EXPECT_TRUE(in_fresh_process([&] {
    begin(s);
    CUmodule module = nullptr;
    CUfunction look = nullptr;
    CUarray array = nullptr;
    CUdeviceptr out = 0;
    CUtexObject texture = 0;
    const CUDA_ARRAY3D_DESCRIPTOR about = floats(8, 8, 0);
    ASSERT_EQ(ends::cuModuleLoadData(&module, sampling_ptx), CUDA_SUCCESS);
    ASSERT_EQ(ends::cuModuleGetFunction(&look, module, "look"), CUDA_SUCCESS);
    ASSERT_EQ(ends::cuMemAlloc_v2(&out, 4), CUDA_SUCCESS);
    ASSERT_EQ(ends::cuArray3DCreate_v2(&array, &about), CUDA_SUCCESS);
    CUDA_RESOURCE_DESC resource{};
    resource.resType = CU_RESOURCE_TYPE_ARRAY, resource.res.array.hArray = array;
    const CUDA_TEXTURE_DESC sampling{};
    ASSERT_EQ(ends::cuTexObjectCreate(&texture, &resource, &sampling, nullptr), CUDA_SUCCESS);
    std::vector<float> texels(64);
    for (std::size_t i = 0; i < 64; ++i) texels[i] = static_cast<float>(i);
    CUDA_MEMCPY2D fill{};
    fill.srcMemoryType = CU_MEMORYTYPE_HOST, fill.srcHost = texels.data(), fill.srcPitch = 32;
    fill.dstMemoryType = CU_MEMORYTYPE_ARRAY, fill.dstArray = array, fill.WidthInBytes = 32, fill.Height = 8;
    const auto sampled = [&] {
      float value = 0;
      void* arguments[] = {&texture, &out};
      EXPECT_EQ(ends::cuMemcpy2D_v2(&fill), CUDA_SUCCESS);
      EXPECT_EQ(ends::cuLaunchKernel(look, 1, 1, 1, 1, 1, 1, 0, nullptr, arguments, nullptr), CUDA_SUCCESS);
      EXPECT_EQ(ends::cuMemcpyDtoH_v2(&value, out, 4), CUDA_SUCCESS);
      return value;
    };
    EXPECT_EQ(sampled(), 18.0f);
    std::vector<std::byte> records;
    ASSERT_EQ(process::instance().connection.export_records(records), CUDA_SUCCESS);
    ASSERT_TRUE(s.kill_worker());
    ASSERT_EQ(process::instance().connection.rebuild(records), CUDA_SUCCESS);
    EXPECT_EQ(sampled(), 18.0f);
    EXPECT_EQ(ends::cuTexObjectDestroy(texture), CUDA_SUCCESS);
    EXPECT_EQ(ends::cuArrayDestroy(array), CUDA_SUCCESS);
  }));
}

}  // namespace
}  // namespace outboard::tests
