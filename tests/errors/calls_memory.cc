// Wrong calls of the chapter memory: blocks, page-locked memory, copies in a row, fills.
#include "world.hh"

namespace wrong_calls {

namespace {

constexpr std::size_t huge = std::size_t{1} << 46;
constexpr CUdeviceptr nowhere = 0x6'0000'0000'0000ull;  ///< no memory at all

CUdeviceptr block(std::size_t bytes) {
  CUdeviceptr d = 0;
  NEED(cuMemAlloc(&d, bytes));
  return d;
}
/// The address of a block that was freed.
CUdeviceptr freed() {
  const CUdeviceptr d = block(8 << 20);
  NEED(cuMemFree(d));
  return d;
}
void* page_locked() {
  void* p = nullptr;
  NEED(cuMemHostAlloc(&p, 8192, 0));
  return p;
}

}  // namespace

calls memory_calls() {
  return {
      WRONG("cuMemGetInfo.nulls", in_context, cuMemGetInfo(nullptr, nullptr)),
      WRONG("cuMemGetInfo.none", no_context, cuMemGetInfo(&o.n, &o.n2)),
      WRONG("cuMemAlloc.null", in_context, cuMemAlloc(nullptr, 64)),
      WRONG("cuMemAlloc.zero", in_context, cuMemAlloc(&o.d, 0)),
      WRONG("cuMemAlloc.huge", in_context, cuMemAlloc(&o.d, huge)),
      WRONG("cuMemAlloc.all_ones", in_context, cuMemAlloc(&o.d, ~std::size_t{0})),
      WRONG("cuMemAlloc.none", no_context, cuMemAlloc(&o.d, 64)),
      WRONG("cuMemAllocPitch.null", in_context, cuMemAllocPitch(nullptr, &o.n, 64, 4, 4)),
      WRONG("cuMemAllocPitch.null_pitch", in_context, cuMemAllocPitch(&o.d, nullptr, 64, 4, 4)),
      WRONG("cuMemAllocPitch.zero_width", in_context, cuMemAllocPitch(&o.d, &o.n, 0, 4, 4)),
      WRONG("cuMemAllocPitch.zero_height", in_context, cuMemAllocPitch(&o.d, &o.n, 64, 0, 4)),
      WRONG("cuMemAllocPitch.element", in_context, cuMemAllocPitch(&o.d, &o.n, 64, 4, 3)),
      WRONG("cuMemAllocPitch.element_zero", in_context, cuMemAllocPitch(&o.d, &o.n, 64, 4, 0)),
      WRONG("cuMemAllocPitch.element_large", in_context, cuMemAllocPitch(&o.d, &o.n, 64, 4, 32)),
      WRONG("cuMemAllocPitch.huge", in_context, cuMemAllocPitch(&o.d, &o.n, 1 << 30, 1 << 20, 4)),
      WRONG("cuMemAllocPitch.overflow", in_context,
            cuMemAllocPitch(&o.d, &o.n, std::size_t{1} << 40, std::size_t{1} << 40, 4)),
      WRONG("cuMemFree.null", in_context, cuMemFree(0)),
      WRONG("cuMemFree.nowhere", in_context, cuMemFree(nowhere)),
      WRONG("cuMemFree.inside", in_context, cuMemFree(w.memory + 4096)),
      WRONG("cuMemFree.twice", in_context, cuMemFree(freed())),
      WRONG("cuMemFree.pinned", in_context, cuMemFree(reinterpret_cast<CUdeviceptr>(w.pinned))),
      WRONG("cuMemFree.pageable", in_context, cuMemFree(reinterpret_cast<CUdeviceptr>(host))),
      WRONG_DO("cuMemFree.reserved", in_context,
               {
                 NEED(cuMemAddressReserve(&o.d, 2 << 20, 0, 0, 0));
                 return cuMemFree(o.d);
               }),
      WRONG_DO("cuMemFree.global", in_context,
               {
                 NEED(cuModuleGetGlobal(&o.d, &o.n, w.module, "number"));
                 return cuMemFree(o.d);
               }),
      WRONG("cuMemFree.none_nowhere", no_context, cuMemFree(nowhere)),
      WRONG("cuMemGetAddressRange.nowhere", in_context, cuMemGetAddressRange(&o.d, &o.n, nowhere)),
      WRONG("cuMemGetAddressRange.null", in_context, cuMemGetAddressRange(&o.d, &o.n, 0)),
      WRONG("cuMemGetAddressRange.nulls", in_context, cuMemGetAddressRange(nullptr, nullptr, w.memory)),
      WRONG("cuMemGetAddressRange.freed", in_context, cuMemGetAddressRange(&o.d, &o.n, freed())),
      WRONG("cuMemGetAddressRange.pageable", in_context,
            cuMemGetAddressRange(&o.d, &o.n, reinterpret_cast<CUdeviceptr>(host))),
      WRONG("cuMemGetAddressRange.none", no_context, cuMemGetAddressRange(&o.d, &o.n, w.memory)),
  };
}

calls host_memory_calls() {
  return {
      WRONG("cuMemAllocHost.null", in_context, cuMemAllocHost(nullptr, 64)),
      WRONG("cuMemAllocHost.zero", in_context, cuMemAllocHost(&o.p, 0)),
      WRONG("cuMemAllocHost.huge", in_context, cuMemAllocHost(&o.p, huge)),
      WRONG("cuMemAllocHost.none", no_context, cuMemAllocHost(&o.p, 64)),
      WRONG("cuMemHostAlloc.null", in_context, cuMemHostAlloc(nullptr, 64, 0)),
      WRONG("cuMemHostAlloc.zero", in_context, cuMemHostAlloc(&o.p, 0, 0)),
      WRONG("cuMemHostAlloc.flags", in_context, cuMemHostAlloc(&o.p, 64, 0x80)),
      WRONG("cuMemHostAlloc.huge", in_context, cuMemHostAlloc(&o.p, huge, 0)),
      WRONG("cuMemFreeHost.null", in_context, cuMemFreeHost(nullptr)),
      WRONG("cuMemFreeHost.pageable", in_context, cuMemFreeHost(host)),
      WRONG("cuMemFreeHost.inside", in_context, cuMemFreeHost(static_cast<char*>(w.pinned) + 4096)),
      WRONG_DO("cuMemFreeHost.twice", in_context,
               {
                 void* p = page_locked();
                 NEED(cuMemFreeHost(p));
                 return cuMemFreeHost(p);
               }),
      WRONG("cuMemFreeHost.device", in_context, cuMemFreeHost(reinterpret_cast<void*>(w.memory))),
      WRONG_DO("cuMemFreeHost.registered", in_context,
               {
                 NEED(cuMemHostRegister(host, 4096, 0));
                 const CUresult code = cuMemFreeHost(host);
                 NEED(cuMemHostUnregister(host));
                 return code;
               }),
      WRONG("cuMemHostGetDevicePointer.pageable", in_context, cuMemHostGetDevicePointer(&o.d, host, 0)),
      WRONG("cuMemHostGetDevicePointer.null", in_context, cuMemHostGetDevicePointer(&o.d, nullptr, 0)),
      WRONG("cuMemHostGetDevicePointer.null_output", in_context,
            cuMemHostGetDevicePointer(nullptr, w.pinned, 0)),
      WRONG("cuMemHostGetDevicePointer.flags", in_context, cuMemHostGetDevicePointer(&o.d, w.pinned, 1)),
      WRONG("cuMemHostGetDevicePointer.device", in_context,
            cuMemHostGetDevicePointer(&o.d, reinterpret_cast<void*>(w.memory), 0)),
      WRONG("cuMemHostGetFlags.pageable", in_context, cuMemHostGetFlags(&o.u, host)),
      WRONG("cuMemHostGetFlags.null", in_context, cuMemHostGetFlags(nullptr, w.pinned)),
      WRONG("cuMemHostGetFlags.null_pointer", in_context, cuMemHostGetFlags(&o.u, nullptr)),
      WRONG("cuMemHostRegister.null", in_context, cuMemHostRegister(nullptr, 4096, 0)),
      WRONG("cuMemHostRegister.zero", in_context, cuMemHostRegister(host, 0, 0)),
      WRONG("cuMemHostRegister.flags", in_context, cuMemHostRegister(host, 4096, 0x100)),
      WRONG("cuMemHostRegister.none", no_context, cuMemHostRegister(host, 4096, 0)),
      WRONG_DO("cuMemHostRegister.twice", in_context,
               {
                 NEED(cuMemHostRegister(host, 8192, 0));
                 const CUresult code = cuMemHostRegister(host, 8192, 0);
                 NEED(cuMemHostUnregister(host));
                 return code;
               }),
      WRONG_DO("cuMemHostRegister.overlap", in_context,
               {
                 NEED(cuMemHostRegister(host, 8192, 0));
                 const CUresult code = cuMemHostRegister(host + 4096, 8192, 0);
                 NEED(cuMemHostUnregister(host));
                 return code;
               }),
      WRONG("cuMemHostRegister.pinned", in_context, cuMemHostRegister(w.pinned, 4096, 0)),
      WRONG("cuMemHostRegister.unmapped", in_context,
            cuMemHostRegister(reinterpret_cast<void*>(0x10000), 4096, 0)),
      WRONG("cuMemHostRegister.device", in_context,
            cuMemHostRegister(reinterpret_cast<void*>(w.memory), 4096, 0)),
      WRONG("cuMemHostRegister.io_memory", in_context,
            cuMemHostRegister(host, 4096, CU_MEMHOSTREGISTER_IOMEMORY)),
      WRONG("cuMemHostUnregister.never", in_context, cuMemHostUnregister(host)),
      WRONG("cuMemHostUnregister.null", in_context, cuMemHostUnregister(nullptr)),
      WRONG("cuMemHostUnregister.pinned", in_context, cuMemHostUnregister(w.pinned)),
      WRONG_DO("cuMemHostUnregister.inside", in_context,
               {
                 NEED(cuMemHostRegister(host, 8192, 0));
                 const CUresult code = cuMemHostUnregister(host + 4096);
                 if (code != CUDA_SUCCESS) NEED(cuMemHostUnregister(host));
                 return code;
               }),
      WRONG_DO("cuMemHostUnregister.twice", in_context,
               {
                 NEED(cuMemHostRegister(host, 8192, 0));
                 NEED(cuMemHostUnregister(host));
                 return cuMemHostUnregister(host);
               }),
  };
}

calls copy_calls() {
  return {
      WRONG("cuMemcpyHtoD.null_device", in_context, cuMemcpyHtoD(0, host, 64)),
      WRONG("cuMemcpyHtoD.null_host", in_context, cuMemcpyHtoD(w.memory, nullptr, 64)),
      WRONG("cuMemcpyHtoD.null_host_nothing", in_context, cuMemcpyHtoD(w.memory, nullptr, 0)),
      WRONG("cuMemcpyHtoD.nothing_nowhere", in_context, cuMemcpyHtoD(nowhere, host, 0)),
      WRONG("cuMemcpyHtoD.nowhere", in_context, cuMemcpyHtoD(nowhere, host, 64)),
      WRONG("cuMemcpyHtoD.over_the_end", in_context,
            cuMemcpyHtoD(block(8 << 20) + (8 << 20) - 64, host, 4096)),
      WRONG("cuMemcpyHtoD.freed", in_context, cuMemcpyHtoD(freed(), host, 64)),
      WRONG("cuMemcpyHtoD.to_pageable", in_context,
            cuMemcpyHtoD(reinterpret_cast<CUdeviceptr>(host + 8192), host, 64)),
      WRONG("cuMemcpyHtoD.none", no_context, cuMemcpyHtoD(w.memory, host, 64)),
      WRONG("cuMemcpyDtoH.null_device", in_context, cuMemcpyDtoH(host, 0, 64)),
      WRONG("cuMemcpyDtoH.null_host", in_context, cuMemcpyDtoH(nullptr, w.memory, 64)),
      WRONG("cuMemcpyDtoH.nowhere", in_context, cuMemcpyDtoH(host, nowhere, 64)),
      WRONG("cuMemcpyDtoH.over_the_end", in_context,
            cuMemcpyDtoH(host, block(8 << 20) + (8 << 20) - 64, 4096)),
      WRONG("cuMemcpyDtoH.freed", in_context, cuMemcpyDtoH(host, freed(), 64)),
      WRONG("cuMemcpyDtoH.none", no_context, cuMemcpyDtoH(host, w.memory, 64)),
      WRONG("cuMemcpyDtoD.null_target", in_context, cuMemcpyDtoD(0, w.memory, 64)),
      WRONG("cuMemcpyDtoD.null_source", in_context, cuMemcpyDtoD(w.memory, 0, 64)),
      WRONG("cuMemcpyDtoD.nowhere", in_context, cuMemcpyDtoD(nowhere, w.memory, 64)),
      WRONG("cuMemcpyDtoD.from_nowhere", in_context, cuMemcpyDtoD(w.memory, nowhere, 64)),
      WRONG("cuMemcpyDtoD.over_the_end", in_context,
            cuMemcpyDtoD(block(8 << 20), block(4 << 20) + (4 << 20) - 64, 4 << 20)),
      WRONG("cuMemcpyDtoD.freed", in_context, cuMemcpyDtoD(freed(), w.memory, 64)),
      WRONG("cuMemcpy.null_target", in_context, cuMemcpy(0, w.memory, 64)),
      WRONG("cuMemcpy.null_source", in_context, cuMemcpy(w.memory, 0, 64)),
      WRONG("cuMemcpy.nulls_nothing", in_context, cuMemcpy(0, 0, 0)),
      WRONG("cuMemcpy.over_the_end", in_context,
            cuMemcpy(block(8 << 20) + (8 << 20) - 64, reinterpret_cast<CUdeviceptr>(host), 4096)),
      WRONG("cuMemcpyAsync.null_target", in_context, cuMemcpyAsync(0, w.memory, 64, w.stream)),
      WRONG("cuMemcpyHtoDAsync.null_device", in_context, cuMemcpyHtoDAsync(0, host, 64, w.stream)),
      WRONG("cuMemcpyHtoDAsync.nowhere", in_context, cuMemcpyHtoDAsync(nowhere, host, 64, w.stream)),
      WRONG("cuMemcpyHtoDAsync.pinned_nowhere", in_context,
            cuMemcpyHtoDAsync(nowhere, w.pinned, 64, w.stream)),
      WRONG("cuMemcpyHtoDAsync.null_host", in_context, cuMemcpyHtoDAsync(w.memory, nullptr, 64, w.stream)),
      WRONG("cuMemcpyHtoDAsync.over_the_end", in_context,
            cuMemcpyHtoDAsync(block(8 << 20) + (8 << 20) - 64, w.pinned, 4096, w.stream)),
      WRONG("cuMemcpyHtoDAsync.none_default", no_context, cuMemcpyHtoDAsync(w.memory, host, 64, nullptr)),
      WRONG("cuMemcpyHtoDAsync.none_stream", no_context, cuMemcpyHtoDAsync(w.memory, w.pinned, 64, w.stream)),
      WRONG("cuMemcpyDtoHAsync.nowhere", in_context, cuMemcpyDtoHAsync(w.pinned, nowhere, 64, w.stream)),
      WRONG("cuMemcpyDtoHAsync.null_host", in_context, cuMemcpyDtoHAsync(nullptr, w.memory, 64, w.stream)),
      WRONG("cuMemcpyDtoHAsync.null_device", in_context, cuMemcpyDtoHAsync(w.pinned, 0, 64, w.stream)),
      WRONG("cuMemcpyDtoHAsync.over_the_end", in_context,
            cuMemcpyDtoHAsync(w.pinned, block(8 << 20) + (8 << 20) - 64, 4096, w.stream)),
      WRONG("cuMemcpyDtoDAsync.nowhere", in_context, cuMemcpyDtoDAsync(nowhere, w.memory, 64, w.stream)),
      WRONG("cuMemcpyDtoDAsync.freed", in_context, cuMemcpyDtoDAsync(w.memory, freed(), 64, w.stream)),
      WRONG("cuMemcpyPeer.null_contexts", in_context,
            cuMemcpyPeer(w.memory, nullptr, w.memory + 4096, nullptr, 64)),
      WRONG("cuMemcpyPeer.nowhere", in_context, cuMemcpyPeer(nowhere, w.context, w.memory, w.context, 64)),
      WRONG("cuMemcpyPeer.null_address", in_context, cuMemcpyPeer(0, w.context, w.memory, w.context, 64)),
      WRONG("cuMemcpyPeerAsync.nowhere", in_context,
            cuMemcpyPeerAsync(nowhere, w.context, w.memory, w.context, 64, w.stream)),
      // batches
      WRONG("cuMemcpyBatchAsync.nulls", in_context,
            cuMemcpyBatchAsync(nullptr, nullptr, nullptr, 1, nullptr, nullptr, 0, w.stream)),
      WRONG("cuMemcpyBatchAsync.empty", in_context,
            cuMemcpyBatchAsync(nullptr, nullptr, nullptr, 0, nullptr, nullptr, 0, w.stream)),
      WRONG_DO("cuMemcpyBatchAsync.default_stream", in_context,
               {
                 CUdeviceptr to = w.memory, from = w.memory + 4096;
                 std::size_t bytes = 64, first = 0;
                 CUmemcpyAttributes how{};
                 how.srcAccessOrder = CU_MEMCPY_SRC_ACCESS_ORDER_STREAM;
                 return cuMemcpyBatchAsync(&to, &from, &bytes, 1, &how, &first, 1, nullptr);
               }),
      WRONG_DO("cuMemcpyBatchAsync.no_attributes", in_context,
               {
                 CUdeviceptr to = w.memory, from = w.memory + 4096;
                 std::size_t bytes = 64;
                 return cuMemcpyBatchAsync(&to, &from, &bytes, 1, nullptr, nullptr, 0, w.stream);
               }),
      WRONG_DO("cuMemcpyBatchAsync.order_invalid", in_context,
               {
                 CUdeviceptr to = w.memory, from = w.memory + 4096;
                 std::size_t bytes = 64, first = 0;
                 CUmemcpyAttributes how{};
                 return cuMemcpyBatchAsync(&to, &from, &bytes, 1, &how, &first, 1, w.stream);
               }),
      WRONG_DO("cuMemcpyBatchAsync.first_index", in_context,
               {
                 CUdeviceptr to = w.memory, from = w.memory + 4096;
                 std::size_t bytes = 64, first = 1;
                 CUmemcpyAttributes how{};
                 how.srcAccessOrder = CU_MEMCPY_SRC_ACCESS_ORDER_STREAM;
                 return cuMemcpyBatchAsync(&to, &from, &bytes, 1, &how, &first, 1, w.stream);
               }),
      WRONG_DO("cuMemcpyBatchAsync.nowhere", in_context,
               {
                 CUdeviceptr to = nowhere, from = w.memory + 4096;
                 std::size_t bytes = 64, first = 0;
                 CUmemcpyAttributes how{};
                 how.srcAccessOrder = CU_MEMCPY_SRC_ACCESS_ORDER_STREAM;
                 return cuMemcpyBatchAsync(&to, &from, &bytes, 1, &how, &first, 1, w.stream);
               }),
      WRONG_DO("cuMemcpyBatchAsync.nothing", in_context,
               {
                 CUdeviceptr to = w.memory, from = w.memory + 4096;
                 std::size_t bytes = 0, first = 0;
                 CUmemcpyAttributes how{};
                 how.srcAccessOrder = CU_MEMCPY_SRC_ACCESS_ORDER_STREAM;
                 return cuMemcpyBatchAsync(&to, &from, &bytes, 1, &how, &first, 1, w.stream);
               }),
      WRONG("cuMemcpy3DBatchAsync.nulls", in_context, cuMemcpy3DBatchAsync(1, nullptr, 0, w.stream)),
      WRONG("cuMemcpy3DBatchAsync.flags", in_context, cuMemcpy3DBatchAsync(0, nullptr, 1, w.stream)),
  };
}

calls fill_calls() {
  return {
      WRONG("cuMemsetD8.null", in_context, cuMemsetD8(0, 1, 64)),
      WRONG("cuMemsetD8.null_nothing", in_context, cuMemsetD8(0, 1, 0)),
      WRONG("cuMemsetD8.nowhere", in_context, cuMemsetD8(nowhere, 1, 64)),
      WRONG("cuMemsetD8.nowhere_nothing", in_context, cuMemsetD8(nowhere, 1, 0)),
      WRONG("cuMemsetD8.over_the_end", in_context, cuMemsetD8(block(8 << 20) + (8 << 20) - 64, 1, 4096)),
      WRONG("cuMemsetD8.far_over_the_end", in_context, cuMemsetD8(w.memory, 1, huge)),
      WRONG("cuMemsetD8.freed", in_context, cuMemsetD8(freed(), 1, 64)),
      WRONG("cuMemsetD8.pageable", in_context, cuMemsetD8(reinterpret_cast<CUdeviceptr>(host), 1, 64)),
      WRONG("cuMemsetD8.none", no_context, cuMemsetD8(w.memory, 1, 64)),
      WRONG("cuMemsetD16.unaligned", in_context, cuMemsetD16(w.memory + 1, 1, 64)),
      WRONG("cuMemsetD16.over_the_end", in_context, cuMemsetD16(block(8 << 20) + (8 << 20) - 64, 1, 64)),
      WRONG("cuMemsetD32.unaligned", in_context, cuMemsetD32(w.memory + 2, 1, 64)),
      WRONG("cuMemsetD32.over_the_end", in_context, cuMemsetD32(block(8 << 20) + (8 << 20) - 64, 1, 64)),
      WRONG("cuMemsetD32.overflow", in_context, cuMemsetD32(w.memory, 1, std::size_t{1} << 62)),
      WRONG("cuMemsetD32.unaligned_nothing", in_context, cuMemsetD32(w.memory + 2, 1, 0)),
      WRONG("cuMemsetD2D8.pitch", in_context, cuMemsetD2D8(w.memory, 32, 1, 64, 4)),
      WRONG("cuMemsetD2D8.null", in_context, cuMemsetD2D8(0, 64, 1, 64, 4)),
      WRONG("cuMemsetD2D8.over_the_end", in_context, cuMemsetD2D8(block(8 << 20), 1 << 20, 1, 64, 100)),
      WRONG("cuMemsetD2D8.no_height", in_context, cuMemsetD2D8(0, 64, 1, 64, 0)),
      WRONG("cuMemsetD2D32.unaligned", in_context, cuMemsetD2D32(w.memory + 2, 256, 1, 8, 4)),
      WRONG("cuMemsetD2D32.pitch_unaligned", in_context, cuMemsetD2D32(w.memory, 250, 1, 8, 4)),
      WRONG("cuMemsetD2D32.pitch", in_context, cuMemsetD2D32(w.memory, 16, 1, 8, 4)),
      WRONG("cuMemsetD2D16.unaligned", in_context, cuMemsetD2D16(w.memory + 1, 256, 1, 8, 4)),
      WRONG("cuMemsetD8Async.nowhere", in_context, cuMemsetD8Async(nowhere, 1, 64, w.stream)),
      WRONG("cuMemsetD8Async.null", in_context, cuMemsetD8Async(0, 1, 64, w.stream)),
      WRONG("cuMemsetD8Async.over_the_end", in_context,
            cuMemsetD8Async(block(8 << 20) + (8 << 20) - 64, 1, 4096, w.stream)),
      WRONG("cuMemsetD8Async.none_default", no_context, cuMemsetD8Async(w.memory, 1, 64, nullptr)),
      WRONG("cuMemsetD8Async.none_stream", no_context, cuMemsetD8Async(w.memory, 1, 64, w.stream)),
      WRONG("cuMemsetD16Async.unaligned", in_context, cuMemsetD16Async(w.memory + 1, 1, 64, w.stream)),
      WRONG("cuMemsetD32Async.unaligned", in_context, cuMemsetD32Async(w.memory + 1, 1, 64, w.stream)),
      WRONG("cuMemsetD32Async.pinned", in_context,
            cuMemsetD32Async(reinterpret_cast<CUdeviceptr>(w.pinned), 1, 1 << 20, w.stream)),
      WRONG("cuMemsetD2D8Async.pitch", in_context, cuMemsetD2D8Async(w.memory, 32, 1, 64, 4, w.stream)),
      WRONG("cuMemsetD2D32Async.unaligned", in_context,
            cuMemsetD2D32Async(w.memory + 2, 256, 1, 8, 4, w.stream)),
  };
}

}  // namespace wrong_calls
