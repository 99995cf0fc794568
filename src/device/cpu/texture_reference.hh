// Texture references (cuTexRef*): what they are bound to and how they would be read. No kernel here uses one.
// Guarded by machine::texture_references_mutex; lives as long as its handle.
#pragma once

#include <array>

#include "device/cpu/context.hh"

namespace outboard::device::cpu {

struct texture_reference {
  CUarray array = nullptr;
  CUmipmappedArray mipmap = nullptr;
  CUdeviceptr address = 0;
  CUarray_format format = CU_AD_FORMAT_FLOAT;
  int channels = 1;
  std::array<CUaddress_mode, 3> modes{CU_TR_ADDRESS_MODE_CLAMP, CU_TR_ADDRESS_MODE_CLAMP,
                                      CU_TR_ADDRESS_MODE_CLAMP};
  CUfilter_mode filter = CU_TR_FILTER_MODE_POINT, mipmap_filter = CU_TR_FILTER_MODE_POINT;
  float bias = 0, lowest = 0, highest = 0;
  unsigned anisotropy = 0, flags = 0;
  std::array<float, 4> border{};
};

}  // namespace outboard::device::cpu
