#include "device/cpu/memory/memory_operations.hh"

#include <atomic>
#include <chrono>
#include <thread>

#include "device/cpu/machine.hh"

namespace outboard::device::cpu {
namespace {

CUresult check_place(CUdeviceptr address, std::uint64_t size, bool write) {
  const bool good = address % size == 0 && here().store->accessible(address, size, write);
  return good ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

CUresult check(const CUstreamBatchMemOpParams& one) {
  constexpr unsigned no_barrier = CU_STREAM_WRITE_VALUE_NO_MEMORY_BARRIER;
  const bool wide =
      one.operation == CU_STREAM_MEM_OP_WRITE_VALUE_64 || one.operation == CU_STREAM_MEM_OP_WAIT_VALUE_64;
  switch (one.operation) {
    case CU_STREAM_MEM_OP_WRITE_VALUE_32:
    case CU_STREAM_MEM_OP_WRITE_VALUE_64:
      if ((one.writeValue.flags & ~no_barrier) != 0) return CUDA_ERROR_INVALID_VALUE;
      return check_place(one.writeValue.address, wide ? 8 : 4, true);
    case CU_STREAM_MEM_OP_WAIT_VALUE_32:
    case CU_STREAM_MEM_OP_WAIT_VALUE_64:
      // Attribute 98 says that there is no flush of remote writes.
      if (one.waitValue.flags > CU_STREAM_WAIT_VALUE_NOR) return CUDA_ERROR_INVALID_VALUE;
      return check_place(one.waitValue.address, wide ? 8 : 4, false);
    case CU_STREAM_MEM_OP_BARRIER:
      return CUDA_SUCCESS;
    default:
      return CUDA_ERROR_INVALID_VALUE;
  }
}

template <class T>
bool reached(T seen, T value, unsigned how) {
  switch (how) {
    case CU_STREAM_WAIT_VALUE_GEQ:
      return static_cast<std::make_signed_t<T>>(seen - value) >= 0;
    case CU_STREAM_WAIT_VALUE_EQ:
      return seen == value;
    case CU_STREAM_WAIT_VALUE_AND:
      return (seen & value) != 0;
    default:
      return static_cast<T>(~(seen | value)) != 0;  // CU_STREAM_WAIT_VALUE_NOR
  }
}

template <class T>
void wait_for(CUdeviceptr address, T value, unsigned how, const stream_group& group) {
  const std::atomic_ref seen(*reinterpret_cast<T*>(address));
  for (int tries = 0; !reached<T>(seen.load(std::memory_order_acquire), value, how); ++tries) {
    if (group.error.load(std::memory_order_acquire) != CUDA_SUCCESS) return;
    if (tries < 1000) {
      std::this_thread::yield();
    } else {
      std::this_thread::sleep_for(std::chrono::microseconds(50));
    }
  }
}

/// Seen by a polling host or kernel after everything before it in the stream.
template <class T>
void write_to(CUdeviceptr address, T value) {
  std::atomic_ref(*reinterpret_cast<T*>(address)).store(value, std::memory_order_release);
}

}  // namespace

CUresult check_memory_operations(std::span<const CUstreamBatchMemOpParams> operations, unsigned flags) {
  if (flags != 0) return CUDA_ERROR_INVALID_VALUE;
  for (const CUstreamBatchMemOpParams& one : operations) {
    if (const CUresult r = check(one); r != CUDA_SUCCESS) return r;
  }
  return CUDA_SUCCESS;
}

CUresult run_memory_operations(std::span<const CUstreamBatchMemOpParams> operations, const group_ptr& group) {
  const memory::flight flight(*here().store);
  for (const CUstreamBatchMemOpParams& one : operations) {
    // A graph's run long after the call: the memory may have gone.
    if (check(one) != CUDA_SUCCESS) return CUDA_ERROR_ILLEGAL_ADDRESS;
    switch (one.operation) {
      case CU_STREAM_MEM_OP_WRITE_VALUE_32:
        write_to(one.writeValue.address, one.writeValue.value);
        break;
      case CU_STREAM_MEM_OP_WRITE_VALUE_64:
        write_to(one.writeValue.address, one.writeValue.value64);
        break;
      case CU_STREAM_MEM_OP_WAIT_VALUE_32:
        wait_for(one.waitValue.address, one.waitValue.value, one.waitValue.flags, *group);
        break;
      case CU_STREAM_MEM_OP_WAIT_VALUE_64:
        wait_for(one.waitValue.address, one.waitValue.value64, one.waitValue.flags, *group);
        break;
      default:
        std::atomic_thread_fence(std::memory_order_seq_cst);
        break;
    }
  }
  return CUDA_SUCCESS;
}

}  // namespace outboard::device::cpu
