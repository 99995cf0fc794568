// Batches of copies of boxes (cuMemcpy3DBatchAsync): each is its parts in order, in one stream, as batch.cc
// has it of plain copies.
#include "frontend/cuda/copying/boxes.hh"
#include "frontend/cuda/copying/copies.hh"
#include "frontend/cuda/ends.hh"
#include "frontend/cuda/objects.hh"
#include "frontend/cuda/remote.hh"

namespace outboard::frontend::cuda {
namespace {

constexpr unsigned known_flags = CU_MEMCPY_FLAG_PREFER_OVERLAP_WITH_COMPUTE;

/// Extents and offsets count elements: those of the array where one is part of the copy (the source's first),
/// else bytes. 0: that is no array, or none whose elements can be counted.
std::uint64_t element_of(const CUDA_MEMCPY3D_BATCH_OP& op) {
  for (const CUmemcpy3DOperand* side : {&op.src, &op.dst}) {
    if (side->type != CU_MEMCPY_OPERAND_TYPE_ARRAY) continue;
    const auto* array = find_object<array_info>(side->op.array.array);
    return array ? element_bytes(array->about) : 0;
  }
  return 1;
}

/// One side; false: it makes no sense.
bool to_end(const CUmemcpy3DOperand& side, const CUextent3D& extent, std::uint64_t element, box_end& out) {
  if (side.type == CU_MEMCPY_OPERAND_TYPE_ARRAY) {
    const auto* array = find_object<array_info>(side.op.array.array);
    if (!array || element_bytes(array->about) == 0) return false;
    out.type = CU_MEMORYTYPE_ARRAY, out.array = side.op.array.array;
    out.x = side.op.array.offset.x * element_bytes(array->about);
    out.y = side.op.array.offset.y, out.z = side.op.array.offset.z;
    return true;
  }
  if (side.type != CU_MEMCPY_OPERAND_TYPE_POINTER || side.op.ptr.ptr == 0) return false;
  const auto& p = side.op.ptr;
  if ((p.rowLength && p.rowLength < extent.width) || (p.layerHeight && p.layerHeight < extent.height))
    return false;
  out.type = on_device(p.ptr) ? CU_MEMORYTYPE_DEVICE : CU_MEMORYTYPE_HOST;
  out.device = p.ptr;
  out.host = reinterpret_cast<void*>(p.ptr);
  return !__builtin_mul_overflow(p.rowLength ? p.rowLength : extent.width, element, &out.pitch) &&
         (out.rows = p.layerHeight ? p.layerHeight : extent.height, true);
}

bool to_box(const CUDA_MEMCPY3D_BATCH_OP& op, box& out) {
  const std::uint64_t element = element_of(op);
  const CUextent3D& e = op.extent;
  if (element == 0 || e.width == 0 || e.height == 0 || e.depth == 0 || (op.flags & ~known_flags) ||
      op.srcAccessOrder < CU_MEMCPY_SRC_ACCESS_ORDER_STREAM ||
      op.srcAccessOrder > CU_MEMCPY_SRC_ACCESS_ORDER_ANY) {
    return false;
  }
  out.height = e.height, out.depth = e.depth;
  return !__builtin_mul_overflow(e.width, element, &out.width) && to_end(op.dst, e, element, out.to) &&
         to_end(op.src, e, element, out.from);
}

/// As batch.cc has it of plain copies.
CUresult copy_during_call(box copy, CUstream stream, marshal::flavour how, bool& wait) {
  std::vector<std::byte> bytes;
  if (copy.from.type != CU_MEMORYTYPE_HOST) {
    wait = true;
  } else if (copy.to.type != CU_MEMORYTYPE_HOST) {
    read_source(copy, bytes);
  }
  return copy_box(copy, stream, how);
}

struct batch {
  std::size_t count;
  const CUDA_MEMCPY3D_BATCH_OP* list;
  std::size_t* failed;
  unsigned long long flags;
  CUstream stream;
};

CUresult copy_boxes(const batch& b, marshal::flavour how) {
  if (b.failed) *b.failed = ~std::size_t{0};
  if (const CUresult code = process::instance().gate(this_lane()); code != CUDA_SUCCESS) return code;
  const bool legacy = b.stream == CU_STREAM_LEGACY || (!b.stream && !marshal::per_thread(how));
  if (b.count == 0 || !b.list || b.flags != 0 || legacy) return CUDA_ERROR_INVALID_VALUE;
  if (!stream_ok(b.stream)) return CUDA_ERROR_INVALID_HANDLE;
  bool wait = false;
  for (std::size_t i = 0; i < b.count; ++i) {
    box one;
    const bool now = b.list[i].srcAccessOrder == CU_MEMCPY_SRC_ACCESS_ORDER_DURING_API_CALL;
    const CUresult code = !to_box(b.list[i], one) ? CUDA_ERROR_INVALID_VALUE
                          : now                   ? copy_during_call(one, b.stream, how, wait)
                                                  : copy_box(one, b.stream, how);
    if (code == CUDA_SUCCESS) continue;
    if (b.failed) *b.failed = i;
    return code;
  }
  return wait ? remote<api::opcode::cuStreamSynchronize>(b.stream ? b.stream : CU_STREAM_PER_THREAD)
              : CUDA_SUCCESS;
}

}  // namespace

namespace ends {

using marshal::flavour;

CUresult cuMemcpy3DBatchAsync(size_t numOps, CUDA_MEMCPY3D_BATCH_OP* opList, size_t* failIdx,
                              unsigned long long flags, CUstream stream) {
  return copy_boxes({numOps, opList, failIdx, flags, stream}, flavour::stream);
}
CUresult cuMemcpy3DBatchAsync_ptsz(size_t numOps, CUDA_MEMCPY3D_BATCH_OP* opList, size_t* failIdx,
                                   unsigned long long flags, CUstream stream) {
  return copy_boxes({numOps, opList, failIdx, flags, stream}, flavour::stream_per_thread);
}
CUresult cuMemcpy3DBatchAsync_v2(size_t numOps, CUDA_MEMCPY3D_BATCH_OP* opList, unsigned long long flags,
                                 CUstream stream) {
  return copy_boxes({numOps, opList, nullptr, flags, stream}, flavour::stream);
}
CUresult cuMemcpy3DBatchAsync_v2_ptsz(size_t numOps, CUDA_MEMCPY3D_BATCH_OP* opList, unsigned long long flags,
                                      CUstream stream) {
  return copy_boxes({numOps, opList, nullptr, flags, stream}, flavour::stream_per_thread);
}

}  // namespace ends
}  // namespace outboard::frontend::cuda
