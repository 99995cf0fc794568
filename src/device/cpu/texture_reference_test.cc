#include "device/cpu/fixture.hh"

namespace outboard::device::cpu {
namespace {

class texture_references : public device_test {
 protected:
  void SetUp() override {
    device_test::SetUp();
    ASSERT_EQ(table_.cuTexRefCreate(&reference_), CUDA_SUCCESS);
  }
  CUtexref reference_ = nullptr;
};

TEST_F(texture_references, return_what_was_set) {
  EXPECT_EQ(table_.cuTexRefSetFormat(reference_, CU_AD_FORMAT_HALF, 2), CUDA_SUCCESS);
  EXPECT_EQ(table_.cuTexRefSetAddressMode(reference_, 1, CU_TR_ADDRESS_MODE_MIRROR), CUDA_SUCCESS);
  EXPECT_EQ(table_.cuTexRefSetFilterMode(reference_, CU_TR_FILTER_MODE_LINEAR), CUDA_SUCCESS);
  EXPECT_EQ(table_.cuTexRefSetFlags(reference_, CU_TRSF_NORMALIZED_COORDINATES), CUDA_SUCCESS);
  EXPECT_EQ(table_.cuTexRefSetMipmapLevelClamp(reference_, 1, 3), CUDA_SUCCESS);
  float border[4] = {1, 2, 3, 4}, got[4] = {};
  EXPECT_EQ(table_.cuTexRefSetBorderColor(reference_, border), CUDA_SUCCESS);

  CUarray_format format{};
  int channels = 0;
  EXPECT_EQ(table_.cuTexRefGetFormat(&format, &channels, reference_), CUDA_SUCCESS);
  EXPECT_EQ(format, CU_AD_FORMAT_HALF);
  EXPECT_EQ(channels, 2);
  CUaddress_mode mode{};
  EXPECT_EQ(table_.cuTexRefGetAddressMode(&mode, reference_, 1), CUDA_SUCCESS);
  EXPECT_EQ(mode, CU_TR_ADDRESS_MODE_MIRROR);
  CUfilter_mode filter{};
  EXPECT_EQ(table_.cuTexRefGetFilterMode(&filter, reference_), CUDA_SUCCESS);
  EXPECT_EQ(filter, CU_TR_FILTER_MODE_LINEAR);
  unsigned flags = 0;
  EXPECT_EQ(table_.cuTexRefGetFlags(&flags, reference_), CUDA_SUCCESS);
  EXPECT_EQ(flags, unsigned{CU_TRSF_NORMALIZED_COORDINATES});
  float lowest = 0, highest = 0;
  EXPECT_EQ(table_.cuTexRefGetMipmapLevelClamp(&lowest, &highest, reference_), CUDA_SUCCESS);
  EXPECT_EQ(lowest, 1);
  EXPECT_EQ(highest, 3);
  EXPECT_EQ(table_.cuTexRefGetBorderColor(got, reference_), CUDA_SUCCESS);
  EXPECT_EQ(got[3], 4);
}

TEST_F(texture_references, are_bound_to_one_thing) {
  CUarray array = nullptr, bound = nullptr;
  CUdeviceptr address = 0;
  EXPECT_EQ(table_.cuTexRefGetArray(&bound, reference_), CUDA_ERROR_INVALID_VALUE);
  EXPECT_EQ(table_.cuTexRefGetAddress_v2(&address, reference_), CUDA_ERROR_INVALID_VALUE);
  CUDA_ARRAY_DESCRIPTOR about{8, 8, CU_AD_FORMAT_UNSIGNED_INT8, 4};
  ASSERT_EQ(table_.cuArrayCreate_v2(&array, &about), CUDA_SUCCESS);
  EXPECT_EQ(table_.cuTexRefSetArray(reference_, array, CU_TRSA_OVERRIDE_FORMAT), CUDA_SUCCESS);
  EXPECT_EQ(table_.cuTexRefGetArray(&bound, reference_), CUDA_SUCCESS);
  EXPECT_EQ(bound, array);
  std::size_t offset = 9;
  const CUdeviceptr memory = allocate(4096);
  EXPECT_EQ(table_.cuTexRefSetAddress_v2(nullptr, reference_, memory + 4, 64), CUDA_ERROR_INVALID_VALUE);
  EXPECT_EQ(table_.cuTexRefSetAddress_v2(&offset, reference_, memory + 4, 64), CUDA_SUCCESS);
  EXPECT_EQ(offset, 4u);
  EXPECT_EQ(table_.cuTexRefGetArray(&bound, reference_), CUDA_ERROR_INVALID_VALUE);
  EXPECT_EQ(table_.cuTexRefGetAddress_v2(&address, reference_), CUDA_SUCCESS);
  EXPECT_EQ(address, memory + 4);
}

TEST_F(texture_references, refuse_what_no_board_has) {
  EXPECT_EQ(table_.cuTexRefSetFormat(reference_, CU_AD_FORMAT_FLOAT, 3), CUDA_ERROR_INVALID_VALUE);
  EXPECT_EQ(table_.cuTexRefSetAddressMode(reference_, 3, CU_TR_ADDRESS_MODE_CLAMP), CUDA_ERROR_INVALID_VALUE);
  EXPECT_EQ(table_.cuTexRefDestroy(reference_), CUDA_SUCCESS);
  EXPECT_EQ(table_.cuTexRefSetFlags(reference_, 0), CUDA_ERROR_INVALID_HANDLE);
  CUtexref named = nullptr;
  EXPECT_EQ(table_.cuModuleGetTexRef(&named, load(), "increment"), CUDA_ERROR_NOT_FOUND);
}

class tensor_maps : public device_test {
 protected:
  CUresult encode(std::uint64_t address, std::uint32_t box, std::uint64_t extent, std::uint64_t stride) {
    const cuuint64_t sizes[] = {extent, 64}, strides[] = {stride};
    const cuuint32_t boxes[] = {box, 8}, steps[] = {1, 1};
    return table_.cuTensorMapEncodeTiled(&map_, CU_TENSOR_MAP_DATA_TYPE_FLOAT32, 2,
                                         reinterpret_cast<void*>(address), sizes, strides, boxes, steps,
                                         CU_TENSOR_MAP_INTERLEAVE_NONE, CU_TENSOR_MAP_SWIZZLE_NONE,
                                         CU_TENSOR_MAP_L2_PROMOTION_NONE, CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE);
  }
  CUtensorMap map_{};
};

TEST_F(tensor_maps, arguments_wrong_on_every_board_are_errors_here) {
  EXPECT_EQ(encode(4096, 8, 64, 256), CUDA_ERROR_NOT_SUPPORTED);
  EXPECT_EQ(encode(4100, 8, 64, 256), CUDA_ERROR_INVALID_VALUE) << "the address";
  EXPECT_EQ(encode(4096, 0, 64, 256), CUDA_ERROR_INVALID_VALUE) << "the box";
  EXPECT_EQ(encode(4096, 512, 64, 256), CUDA_ERROR_INVALID_VALUE) << "the box";
  EXPECT_EQ(encode(4096, 8, 0, 256), CUDA_ERROR_INVALID_VALUE) << "the extent";
  EXPECT_EQ(encode(4096, 8, 64, 252), CUDA_ERROR_INVALID_VALUE) << "the stride";
}

}  // namespace
}  // namespace outboard::device::cpu
