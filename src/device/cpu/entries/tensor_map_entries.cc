// Entries of the chapter tensor map. The device has no instruction that reads one: what is right is not
// supported, what is wrong on every board is said first.
#include "device/cpu/machine.hh"

namespace outboard::device::cpu {
namespace {

constexpr std::uint64_t most_extent = std::uint64_t{1} << 32, most_stride = std::uint64_t{1} << 40;
constexpr std::uint32_t most_box = 256, most_step = 8;

/// Bytes of an element; 0: no such type.
std::uint32_t bytes_of(CUtensorMapDataType type) {
  switch (type) {
    case CU_TENSOR_MAP_DATA_TYPE_UINT8:
    case CU_TENSOR_MAP_DATA_TYPE_16U4_ALIGN8B:
    case CU_TENSOR_MAP_DATA_TYPE_16U4_ALIGN16B:
    case CU_TENSOR_MAP_DATA_TYPE_16U6_ALIGN16B:
      return 1;
    case CU_TENSOR_MAP_DATA_TYPE_UINT16:
    case CU_TENSOR_MAP_DATA_TYPE_FLOAT16:
    case CU_TENSOR_MAP_DATA_TYPE_BFLOAT16:
      return 2;
    case CU_TENSOR_MAP_DATA_TYPE_UINT32:
    case CU_TENSOR_MAP_DATA_TYPE_INT32:
    case CU_TENSOR_MAP_DATA_TYPE_FLOAT32:
    case CU_TENSOR_MAP_DATA_TYPE_FLOAT32_FTZ:
    case CU_TENSOR_MAP_DATA_TYPE_TFLOAT32:
    case CU_TENSOR_MAP_DATA_TYPE_TFLOAT32_FTZ:
      return 4;
    case CU_TENSOR_MAP_DATA_TYPE_UINT64:
    case CU_TENSOR_MAP_DATA_TYPE_INT64:
    case CU_TENSOR_MAP_DATA_TYPE_FLOAT64:
      return 8;
    default:
      return 0;
  }
}

/// The rules of the manual for cuTensorMapEncodeTiled.
CUresult encode_tiled(CUtensorMap* map, CUtensorMapDataType type, cuuint32_t rank, void* address,
                      const cuuint64_t* sizes, const cuuint64_t* strides, const cuuint32_t* box,
                      const cuuint32_t* steps, CUtensorMapInterleave interleave, CUtensorMapSwizzle,
                      CUtensorMapL2promotion, CUtensorMapFloatOOBfill) {
  return with_context([&](context&, const context_ptr&) -> CUresult {
    const std::uint32_t bytes = bytes_of(type);
    const bool interleaved = interleave != CU_TENSOR_MAP_INTERLEAVE_NONE;
    const std::uint64_t unit = interleave == CU_TENSOR_MAP_INTERLEAVE_32B ? 32 : 16;
    if (map == nullptr || bytes == 0 || rank < (interleaved ? 3u : 1u) || rank > 5 ||
        interleave > CU_TENSOR_MAP_INTERLEAVE_32B || sizes == nullptr || box == nullptr || steps == nullptr ||
        (rank > 1 && strides == nullptr) || reinterpret_cast<std::uint64_t>(address) % unit != 0) {
      return CUDA_ERROR_INVALID_VALUE;
    }
    for (std::uint32_t d = 0; d < rank; ++d) {
      if (sizes[d] == 0 || sizes[d] > most_extent || box[d] == 0 || box[d] > most_box || steps[d] == 0 ||
          steps[d] > most_step) {
        return CUDA_ERROR_INVALID_VALUE;
      }
      if (d + 1 < rank && (strides[d] % unit != 0 || strides[d] >= most_stride))
        return CUDA_ERROR_INVALID_VALUE;
    }
    if (!interleaved && std::uint64_t{box[0]} * bytes % 16 != 0) return CUDA_ERROR_INVALID_VALUE;
    return CUDA_ERROR_NOT_SUPPORTED;
  });
}

}  // namespace

void fill_tensor_map_entries(api::driver_table& t) { t.cuTensorMapEncodeTiled = encode_tiled; }

}  // namespace outboard::device::cpu
