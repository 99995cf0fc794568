#include <cstring>
#include <numeric>

#include "device/cpu/fixture.hh"

namespace outboard::device::cpu {
namespace {

constexpr const char* sampling_ptx = R"(
.version 8.0
.target sm_75
.address_size 64
.visible .entry sample(.param .u64 t, .param .u64 out)
{
  .reg .f32 %f<8>;
  .reg .b32 %r<2>;
  .reg .b64 %rd<4>;
  ld.param.u64 %rd1, [t];
  ld.param.u64 %rd2, [out];
  mov.f32 %f1, 0f3FC00000;
  tex.2d.v4.f32.f32 {%f2, %f3, %f4, %f5}, [%rd1, {%f1, %f1}];
  st.global.f32 [%rd2], %f2;
  ret;
}
.visible .entry write(.param .u64 s, .param .u32 x)
{
  .reg .b32 %r<4>;
  .reg .b64 %rd<2>;
  ld.param.u64 %rd1, [s];
  ld.param.u32 %r1, [x];
  mov.u32 %r2, 1;
  sust.b.2d.b32.trap [%rd1, {%r1, %r2}], {%r2};
  ret;
}
)";

constexpr const char* fetching_ptx = R"(
.version 8.0
.target sm_75
.address_size 64
.visible .entry fetch(.param .u64 t, .param .u32 x, .param .u64 out)
{
  .reg .f32 %f<5>;
  .reg .b32 %r<2>;
  .reg .b64 %rd<3>;
  ld.param.u64 %rd1, [t];
  ld.param.u32 %r1, [x];
  ld.param.u64 %rd2, [out];
  tex.1d.v4.f32.s32 {%f1, %f2, %f3, %f4}, [%rd1, {%r1}];
  st.global.f32 [%rd2], %f1;
  ret;
}
)";

class array_test : public device_test {
 protected:
  CUarray make(std::size_t width, std::size_t height, std::size_t depth, unsigned flags = 0,
               CUarray_format format = CU_AD_FORMAT_FLOAT, unsigned channels = 1) {
    CUDA_ARRAY3D_DESCRIPTOR d{width, height, depth, format, channels, flags};
    CUarray array = nullptr;
    code_ = table_.cuArray3DCreate_v2(&array, &d);
    return array;
  }
  std::vector<float> fill(CUarray array, std::size_t width, std::size_t height) {
    std::vector<float> v(width * height);
    std::iota(v.begin(), v.end(), 1.0f);
    CUDA_MEMCPY2D m{};
    m.srcMemoryType = CU_MEMORYTYPE_HOST, m.srcHost = v.data(), m.srcPitch = width * 4;
    m.dstMemoryType = CU_MEMORYTYPE_ARRAY, m.dstArray = array;
    m.WidthInBytes = width * 4, m.Height = height;
    EXPECT_EQ(table_.cuMemcpy2D_v2(&m), CUDA_SUCCESS);
    return v;
  }
  CUtexObject texture_over(CUarray array, unsigned flags = 0,
                           CUfilter_mode filter = CU_TR_FILTER_MODE_POINT) {
    CUDA_RESOURCE_DESC r{};
    r.resType = CU_RESOURCE_TYPE_ARRAY, r.res.array.hArray = array;
    CUDA_TEXTURE_DESC t{};
    t.flags = flags, t.filterMode = filter;
    for (auto& mode : t.addressMode) mode = CU_TR_ADDRESS_MODE_CLAMP;
    CUtexObject made = 0;
    code_ = table_.cuTexObjectCreate(&made, &r, &t, nullptr);
    return made;
  }
  std::size_t free_bytes() {
    std::size_t free = 0, total = 0;
    EXPECT_EQ(table_.cuMemGetInfo_v2(&free, &total), CUDA_SUCCESS);
    return free;
  }
  CUresult code_ = CUDA_SUCCESS;
};

TEST_F(array_test, ArraysHoldTextureWhatTheKernelReads) {
  const CUarray array = make(4, 4, 0);
  ASSERT_EQ(code_, CUDA_SUCCESS);
  fill(array, 4, 4);
  const CUtexObject texture = texture_over(array);
  ASSERT_EQ(code_, CUDA_SUCCESS);
  const CUdeviceptr out = allocate(4);
  const CUmodule module = load(sampling_ptx);
  ASSERT_EQ(launch(function(module, "sample"), nullptr, texture, out), CUDA_SUCCESS);
  float value = 0;
  ASSERT_EQ(table_.cuMemcpyDtoH_v2(&value, out, 4), CUDA_SUCCESS);
  EXPECT_EQ(value, 6.0f);
  EXPECT_EQ(table_.cuTexObjectDestroy(texture), CUDA_SUCCESS);
  EXPECT_EQ(table_.cuTexObjectDestroy(texture), CUDA_SUCCESS) << "of nothing";
  // A value that names nothing any more is a fault of the kernel.
  ASSERT_EQ(launch(function(module, "sample"), nullptr, texture, out), CUDA_SUCCESS);
  EXPECT_EQ(table_.cuCtxSynchronize(), CUDA_ERROR_ILLEGAL_ADDRESS);
}

TEST_F(array_test, SurfacesNeedNoFlagAndEndTheKernelOutside) {
  CUDA_RESOURCE_DESC r{};
  r.resType = CU_RESOURCE_TYPE_ARRAY;
  r.res.array.hArray = make(4, 4, 0, CUDA_ARRAY3D_SURFACE_LDST);
  CUsurfObject flagged = 0, surface = 0;
  ASSERT_EQ(table_.cuSurfObjectCreate(&flagged, &r), CUDA_SUCCESS);
  r.res.array.hArray = make(4, 4, 0);
  ASSERT_EQ(table_.cuSurfObjectCreate(&surface, &r), CUDA_SUCCESS);
  EXPECT_EQ(table_.cuTexObjectDestroy(surface), CUDA_SUCCESS) << "that kind has none of this value";
  const CUfunction write = function(load(sampling_ptx), "write");
  ASSERT_EQ(launch(write, nullptr, surface, 12u), CUDA_SUCCESS);
  unsigned out[4] = {};
  ASSERT_EQ(table_.cuMemcpyAtoH_v2(out, r.res.array.hArray, 16, 16), CUDA_SUCCESS);
  EXPECT_EQ(out[3], 1u);
  ASSERT_EQ(launch(write, nullptr, surface, 16u), CUDA_SUCCESS);
  EXPECT_EQ(table_.cuCtxSynchronize(), CUDA_ERROR_LAUNCH_FAILED);
}

TEST_F(array_test, ArraysAreAccountedAndGivenBack) {
  const std::size_t before = free_bytes();
  const CUarray array = make(1024, 1024, 4);
  ASSERT_EQ(code_, CUDA_SUCCESS);
  EXPECT_EQ(before - free_bytes(), std::size_t{16} << 20);
  EXPECT_EQ(table_.cuArrayDestroy(array), CUDA_SUCCESS);
  EXPECT_EQ(free_bytes(), before);
  EXPECT_EQ(table_.cuArrayDestroy(array), CUDA_ERROR_INVALID_HANDLE);
  make(16384, 16384, 16384);
  EXPECT_EQ(code_, CUDA_ERROR_OUT_OF_MEMORY);
  CUDA_ARRAY3D_DESCRIPTOR d{64, 64, 0, CU_AD_FORMAT_HALF, 2, 0};
  CUmipmappedArray mipmap = nullptr;
  ASSERT_EQ(table_.cuMipmappedArrayCreate(&mipmap, &d, 100), CUDA_SUCCESS);
  CUarray level = nullptr;
  ASSERT_EQ(table_.cuMipmappedArrayGetLevel(&level, mipmap, 6), CUDA_SUCCESS);
  EXPECT_EQ(table_.cuMipmappedArrayGetLevel(&level, mipmap, 7), CUDA_ERROR_INVALID_VALUE);
  EXPECT_EQ(table_.cuArrayDestroy(level), CUDA_ERROR_INVALID_HANDLE);
  EXPECT_EQ(table_.cuMipmappedArrayDestroy(mipmap), CUDA_SUCCESS);
  EXPECT_EQ(table_.cuArray3DGetDescriptor_v2(&d, level), CUDA_ERROR_INVALID_HANDLE);
  EXPECT_EQ(free_bytes(), before);
}

TEST_F(array_test, ShapesThatNoBoardHasAreRefused) {
  struct sample {
    std::size_t width, height, depth;
    unsigned flags, channels;
    CUresult code;
  };
  for (const sample& s :
       {sample{0, 0, 0, 0, 1, CUDA_ERROR_INVALID_VALUE}, sample{4, 0, 4, 0, 1, CUDA_ERROR_INVALID_VALUE},
        sample{4, 4, 0, 0, 3, CUDA_ERROR_INVALID_VALUE},
        sample{4, 5, 6, CUDA_ARRAY3D_CUBEMAP, 1, CUDA_ERROR_INVALID_VALUE},
        sample{4, 4, 7, CUDA_ARRAY3D_CUBEMAP, 1, CUDA_ERROR_INVALID_VALUE},
        sample{200000, 0, 0, 0, 1, CUDA_ERROR_INVALID_VALUE},
        sample{4, 4, 0, CUDA_ARRAY3D_SPARSE, 1, CUDA_ERROR_NOT_SUPPORTED},
        sample{4, 0, 9, CUDA_ARRAY3D_LAYERED, 2, CUDA_SUCCESS},
        sample{4, 4, 12, CUDA_ARRAY3D_LAYERED | CUDA_ARRAY3D_CUBEMAP, 4, CUDA_SUCCESS}}) {
    make(s.width, s.height, s.depth, s.flags, CU_AD_FORMAT_UNSIGNED_INT8, s.channels);
    EXPECT_EQ(code_, s.code) << s.width << " " << s.height << " " << s.depth << " " << s.flags;
  }
}

TEST_F(array_test, TexturesThatMakeNoSenseAreRefused) {
  const CUarray integers = make(4, 4, 0, 0, CU_AD_FORMAT_UNSIGNED_INT32);
  texture_over(integers, 0, CU_TR_FILTER_MODE_LINEAR);
  EXPECT_EQ(code_, CUDA_SUCCESS) << "a driver lets it pass; nothing is mixed";
  texture_over(integers, CU_TRSF_SEAMLESS_CUBEMAP);
  EXPECT_EQ(code_, CUDA_ERROR_INVALID_VALUE);
  texture_over(nullptr);
  EXPECT_EQ(code_, CUDA_ERROR_INVALID_HANDLE);
  CUDA_RESOURCE_DESC r{};
  r.resType = CU_RESOURCE_TYPE_LINEAR;
  r.res.linear = {allocate(4096) + 4, CU_AD_FORMAT_FLOAT, 1, 1024};
  CUDA_TEXTURE_DESC t{};
  CUtexObject made = 0;
  EXPECT_EQ(table_.cuTexObjectCreate(&made, &r, &t, nullptr), CUDA_ERROR_INVALID_VALUE);  // not aligned
  r.res.linear.devPtr -= 4;
  ASSERT_EQ(table_.cuTexObjectCreate(&made, &r, &t, nullptr), CUDA_SUCCESS);
  CUDA_RESOURCE_DESC told{};
  ASSERT_EQ(table_.cuTexObjectGetResourceDesc(&told, made), CUDA_SUCCESS);
  EXPECT_EQ(told.res.linear.devPtr, r.res.linear.devPtr);
  CUDA_RESOURCE_VIEW_DESC view{};
  EXPECT_EQ(table_.cuTexObjectGetResourceViewDesc(&view, made), CUDA_ERROR_INVALID_VALUE);
}

TEST_F(array_test, TexturesOfMemoryThatIsNotThereFaultWhereTheyAreRead) {
  CUDA_RESOURCE_DESC r{};
  r.resType = CU_RESOURCE_TYPE_LINEAR;
  const CUdeviceptr out = allocate(4), block = allocate(2 << 20);
  r.res.linear = {block, CU_AD_FORMAT_FLOAT, 1, 64 << 20};  // far over its end
  CUDA_TEXTURE_DESC t{};
  CUtexObject over = 0, nowhere = 0, nothing = 0;
  ASSERT_EQ(table_.cuTexObjectCreate(&over, &r, &t, nullptr), CUDA_SUCCESS);
  r.res.linear.sizeInBytes = 0;
  ASSERT_EQ(table_.cuTexObjectCreate(&nothing, &r, &t, nullptr), CUDA_SUCCESS);
  r.res.linear = {0x600000000000, CU_AD_FORMAT_FLOAT, 1, 4096};
  ASSERT_EQ(table_.cuTexObjectCreate(&nowhere, &r, &t, nullptr), CUDA_SUCCESS);
  const CUfunction fetch = function(load(fetching_ptx), "fetch");
  ASSERT_EQ(table_.cuMemsetD32_v2(block, 7, 1024), CUDA_SUCCESS);
  ASSERT_EQ(launch(fetch, nullptr, over, 100u, out), CUDA_SUCCESS);
  EXPECT_EQ(read(out), 7u);
  ASSERT_EQ(launch(fetch, nullptr, nothing, 0u, out), CUDA_SUCCESS);
  EXPECT_EQ(read(out), 0u);
  ASSERT_EQ(launch(fetch, nullptr, nowhere, 0u, out), CUDA_SUCCESS);
  EXPECT_EQ(table_.cuCtxSynchronize(), CUDA_ERROR_ILLEGAL_ADDRESS);
}

TEST_F(array_test, APartOfATextureThatIsNotThereFaultsAlone) {
  CUDA_RESOURCE_DESC r{};
  r.resType = CU_RESOURCE_TYPE_LINEAR;
  const CUdeviceptr out = allocate(4);
  r.res.linear = {allocate(2 << 20), CU_AD_FORMAT_FLOAT, 1, 400 << 20};
  CUDA_TEXTURE_DESC t{};
  CUtexObject over = 0;
  ASSERT_EQ(table_.cuTexObjectCreate(&over, &r, &t, nullptr), CUDA_SUCCESS);
  ASSERT_EQ(launch(function(load(fetching_ptx), "fetch"), nullptr, over, 80u << 20, out), CUDA_SUCCESS);
  EXPECT_EQ(table_.cuCtxSynchronize(), CUDA_ERROR_ILLEGAL_ADDRESS);
}

TEST_F(array_test, ViewsReadTheSameBytesOtherwise) {
  const CUarray array = make(4, 4, 0, 0, CU_AD_FORMAT_UNSIGNED_INT32);
  fill(array, 4, 4);
  CUDA_RESOURCE_DESC r{};
  r.resType = CU_RESOURCE_TYPE_ARRAY, r.res.array.hArray = array;
  CUDA_TEXTURE_DESC t{};
  for (auto& mode : t.addressMode) mode = CU_TR_ADDRESS_MODE_CLAMP;
  t.filterMode = CU_TR_FILTER_MODE_LINEAR;
  CUDA_RESOURCE_VIEW_DESC view{};
  view.format = CU_RES_VIEW_FORMAT_FLOAT_1X32, view.width = view.height = 4;
  CUtexObject made = 0;
  ASSERT_EQ(table_.cuTexObjectCreate(&made, &r, &t, &view), CUDA_SUCCESS);
  const CUdeviceptr out = allocate(4);
  ASSERT_EQ(launch(function(load(sampling_ptx), "sample"), nullptr, made, out), CUDA_SUCCESS);
  float value = 0;
  ASSERT_EQ(table_.cuMemcpyDtoH_v2(&value, out, 4), CUDA_SUCCESS);
  EXPECT_EQ(value, 6.0f);
  view.format = CU_RES_VIEW_FORMAT_FLOAT_1X16;
  EXPECT_EQ(table_.cuTexObjectCreate(&made, &r, &t, &view), CUDA_ERROR_INVALID_VALUE);
}

TEST_F(array_test, AViewStaysWithinTheLayersOfItsArray) {
  CUDA_RESOURCE_DESC r{};
  r.resType = CU_RESOURCE_TYPE_ARRAY, r.res.array.hArray = make(4, 4, 4, CUDA_ARRAY3D_LAYERED);
  const CUDA_TEXTURE_DESC t{};
  CUDA_RESOURCE_VIEW_DESC view{};
  view.format = CU_RES_VIEW_FORMAT_FLOAT_1X32, view.width = view.height = 4;
  CUtexObject made = 0;
  view.firstLayer = 1, view.lastLayer = 3;
  EXPECT_EQ(table_.cuTexObjectCreate(&made, &r, &t, &view), CUDA_SUCCESS);
  view.lastLayer = 4;
  EXPECT_EQ(table_.cuTexObjectCreate(&made, &r, &t, &view), CUDA_ERROR_INVALID_VALUE);
  // In 32 bits the layer behind the last one would be the first.
  view.firstLayer = 0x80000000, view.lastLayer = 0xffffffff;
  EXPECT_EQ(table_.cuTexObjectCreate(&made, &r, &t, &view), CUDA_ERROR_INVALID_VALUE);
  r.res.array.hArray = make(4, 4, 12, CUDA_ARRAY3D_LAYERED | CUDA_ARRAY3D_CUBEMAP);
  view.firstLayer = 1, view.lastLayer = 0xffffffff / 6;
  EXPECT_EQ(table_.cuTexObjectCreate(&made, &r, &t, &view), CUDA_ERROR_INVALID_VALUE);
}

TEST_F(array_test, AStagedCopyReadsOnlyItsRows) {
  // The last row ends where the memory does: what a pitch would add beyond it is not there to be read.
  const CUdeviceptr at = allocate(64);
  CUDA_MEMCPY2D m{};
  std::vector<unsigned char> rows(3 * 32 + 16, 7);
  m.srcMemoryType = CU_MEMORYTYPE_HOST, m.srcHost = rows.data(), m.srcPitch = 32;
  m.dstMemoryType = CU_MEMORYTYPE_DEVICE, m.dstDevice = at, m.dstPitch = 16;
  m.WidthInBytes = 16, m.Height = 4;
  CUstream stream = nullptr;
  ASSERT_EQ(table_.cuStreamCreate(&stream, 0), CUDA_SUCCESS);
  ASSERT_EQ(table_.cuMemcpy2DAsync_v2(&m, stream), CUDA_SUCCESS);
  std::memset(rows.data(), 9, rows.size());
  ASSERT_EQ(table_.cuStreamSynchronize(stream), CUDA_SUCCESS);
  EXPECT_EQ(read(at + 60), 0x07070707u);
}

TEST_F(array_test, PeerCopiesStayOnTheOneDevice) {
  const CUdeviceptr a = allocate(64), b = allocate(64);
  ASSERT_EQ(table_.cuMemsetD32_v2(a, 5, 16), CUDA_SUCCESS);
  EXPECT_EQ(table_.cuMemcpyPeer(b, context_, a, context_, 64), CUDA_SUCCESS);
  EXPECT_EQ(read(b + 60), 5u);
  EXPECT_NE(table_.cuMemcpyPeer(b, reinterpret_cast<CUcontext>(8), a, context_, 64), CUDA_SUCCESS);
  CUDA_MEMCPY3D_PEER m{};
  m.srcMemoryType = m.dstMemoryType = CU_MEMORYTYPE_DEVICE;
  m.srcDevice = a, m.dstDevice = b + 8, m.srcContext = m.dstContext = context_;
  m.WidthInBytes = 4, m.Height = 1, m.Depth = 1;
  ASSERT_EQ(table_.cuMemsetD32_v2(a, 6, 1), CUDA_SUCCESS);
  EXPECT_EQ(table_.cuMemcpy3DPeer(&m), CUDA_SUCCESS);
  EXPECT_EQ(read(b + 8), 6u);
}

}  // namespace
}  // namespace outboard::device::cpu
