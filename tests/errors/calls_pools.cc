// Wrong calls of the chapters virtual memory, memory pools, addressing, managed memory.
#include "world.hh"

namespace wrong_calls {

namespace {

constexpr CUdeviceptr nowhere = 0x6'0000'0000'0000ull;
constexpr std::size_t page = 2 << 20;

CUmemAllocationProp on_device() {
  CUmemAllocationProp p{};
  p.type = CU_MEM_ALLOCATION_TYPE_PINNED;
  p.location.type = CU_MEM_LOCATION_TYPE_DEVICE, p.location.id = w.device;
  return p;
}
CUmemAccessDesc both_ways() {
  CUmemAccessDesc a{};
  a.location.type = CU_MEM_LOCATION_TYPE_DEVICE, a.location.id = w.device;
  a.flags = CU_MEM_ACCESS_FLAGS_PROT_READWRITE;
  return a;
}
CUmemLocation here() { return {CU_MEM_LOCATION_TYPE_DEVICE, w.device}; }
CUmemLocation location(CUmemLocationType type, int id) { return {type, id}; }

CUdeviceptr reserved(std::size_t bytes = 4 * page) {
  CUdeviceptr d = 0;
  NEED(cuMemAddressReserve(&d, bytes, 0, 0, 0));
  return d;
}
CUmemGenericAllocationHandle physical(std::size_t bytes = page) {
  CUmemGenericAllocationHandle h = 0;
  const auto p = on_device();
  NEED(cuMemCreate(&h, bytes, &p, 0));
  return h;
}
CUdeviceptr mapped() {
  const CUdeviceptr d = reserved();
  NEED(cuMemMap(d, page, 0, physical(), 0));
  return d;
}
CUdeviceptr accessible() {
  const CUdeviceptr d = mapped();
  const auto a = both_ways();
  NEED(cuMemSetAccess(d, page, &a, 1));
  return d;
}
template <class Change>
CUresult create(Change change, std::size_t bytes = page, unsigned long long flags = 0) {
  auto p = on_device();
  change(p);
  return cuMemCreate(&o.allocation, bytes, &p, flags);
}
template <class Change>
CUresult access(CUdeviceptr d, std::size_t bytes, Change change) {
  auto a = both_ways();
  change(a);
  return cuMemSetAccess(d, bytes, &a, 1);
}
CUmemPoolProps pool_on_device() {
  CUmemPoolProps p{};
  p.allocType = CU_MEM_ALLOCATION_TYPE_PINNED, p.location = here();
  return p;
}
template <class Change>
CUresult create_pool(Change change) {
  auto p = pool_on_device();
  change(p);
  return cuMemPoolCreate(&o.pool, &p);
}
CUmemoryPool own_pool() {
  NEED(create_pool([](auto&) {}));
  return o.pool;
}
CUmemoryPool pool_gone() {
  const CUmemoryPool p = own_pool();
  NEED(cuMemPoolDestroy(p));
  return p;
}
CUdeviceptr from_stream() {
  CUdeviceptr d = 0;
  NEED(cuMemAllocAsync(&d, 4096, w.stream));
  return d;
}
CUdeviceptr managed() {
  CUdeviceptr d = 0;
  NEED(cuMemAllocManaged(&d, page, CU_MEM_ATTACH_GLOBAL));
  return d;
}
void* as_pointer(CUdeviceptr d) { return reinterpret_cast<void*>(d); }

}  // namespace

calls virtual_memory_calls() {
  return {
      WRONG("cuMemAddressReserve.null", in_context, cuMemAddressReserve(nullptr, page, 0, 0, 0)),
      WRONG("cuMemAddressReserve.zero", in_context, cuMemAddressReserve(&o.d, 0, 0, 0, 0)),
      WRONG("cuMemAddressReserve.size", in_context, cuMemAddressReserve(&o.d, 4096, 0, 0, 0)),
      WRONG("cuMemAddressReserve.size_odd", in_context, cuMemAddressReserve(&o.d, page + 1, 0, 0, 0)),
      WRONG("cuMemAddressReserve.alignment", in_context, cuMemAddressReserve(&o.d, page, 12345, 0, 0)),
      WRONG("cuMemAddressReserve.alignment_small", in_context, cuMemAddressReserve(&o.d, page, 256, 0, 0)),
      WRONG("cuMemAddressReserve.flags", in_context, cuMemAddressReserve(&o.d, page, 0, 0, 1)),
      WRONG("cuMemAddressReserve.huge", in_context, cuMemAddressReserve(&o.d, std::size_t{1} << 60, 0, 0, 0)),
      WRONG("cuMemAddressReserve.none", no_context, cuMemAddressReserve(&o.d, page, 0, 0, 0)),
      WRONG("cuMemAddressFree.null", in_context, cuMemAddressFree(0, page)),
      WRONG("cuMemAddressFree.nowhere", in_context, cuMemAddressFree(nowhere, page)),
      WRONG("cuMemAddressFree.size", in_context, cuMemAddressFree(reserved(), page)),
      WRONG("cuMemAddressFree.inside", in_context, cuMemAddressFree(reserved() + page, 3 * page)),
      WRONG("cuMemAddressFree.mapped", in_context, cuMemAddressFree(mapped(), 4 * page)),
      WRONG("cuMemAddressFree.allocated", in_context, cuMemAddressFree(w.memory, world::bytes)),
      WRONG_DO("cuMemAddressFree.twice", in_context,
               {
                 const CUdeviceptr d = reserved();
                 NEED(cuMemAddressFree(d, 4 * page));
                 return cuMemAddressFree(d, 4 * page);
               }),
      WRONG("cuMemCreate.null", in_context,
            [] {
              auto p = on_device();
              return cuMemCreate(nullptr, page, &p, 0);
            }()),
      WRONG("cuMemCreate.null_properties", in_context, cuMemCreate(&o.allocation, page, nullptr, 0)),
      WRONG("cuMemCreate.zero", in_context, create([](auto&) {}, 0)),
      WRONG("cuMemCreate.size", in_context, create([](auto&) {}, 4096)),
      WRONG("cuMemCreate.flags", in_context, create([](auto&) {}, page, 1)),
      WRONG("cuMemCreate.huge", in_context, create([](auto&) {}, std::size_t{1} << 46)),
      WRONG("cuMemCreate.device", in_context, create([](auto& p) { p.location.id = 99; })),
      WRONG("cuMemCreate.location", in_context,
            create([](auto& p) { p.location.type = static_cast<CUmemLocationType>(77); })),
      WRONG("cuMemCreate.no_location", in_context,
            create([](auto& p) { p.location.type = CU_MEM_LOCATION_TYPE_INVALID; })),
      WRONG("cuMemCreate.type", in_context,
            create([](auto& p) { p.type = static_cast<CUmemAllocationType>(9); })),
      WRONG("cuMemCreate.no_type", in_context,
            create([](auto& p) { p.type = CU_MEM_ALLOCATION_TYPE_INVALID; })),
      WRONG("cuMemCreate.handle_type", in_context,
            create([](auto& p) { p.requestedHandleTypes = static_cast<CUmemAllocationHandleType>(0x40); })),
      WRONG("cuMemCreate.win32", in_context,
            create([](auto& p) { p.requestedHandleTypes = CU_MEM_HANDLE_TYPE_WIN32; })),
      WRONG("cuMemRelease.null", in_context, cuMemRelease(0)),
      WRONG("cuMemRelease.twice", alone,
            [] {
              auto h = physical();
              NEED(cuMemRelease(h));
              return cuMemRelease(h);
            }()),
      WRONG("cuMemMap.null", in_context, cuMemMap(0, page, 0, physical(), 0)),
      WRONG("cuMemMap.nowhere", in_context, cuMemMap(nowhere, page, 0, physical(), 0)),
      WRONG("cuMemMap.null_handle", in_context, cuMemMap(reserved(), page, 0, 0, 0)),
      WRONG("cuMemMap.size", in_context, cuMemMap(reserved(), 2 * page, 0, physical(), 0)),
      WRONG("cuMemMap.zero", in_context, cuMemMap(reserved(), 0, 0, physical(), 0)),
      WRONG("cuMemMap.offset", in_context, cuMemMap(reserved(), page, page, physical(2 * page), 0)),
      WRONG("cuMemMap.unaligned", in_context, cuMemMap(reserved() + 4096, page, 0, physical(), 0)),
      WRONG("cuMemMap.flags", in_context, cuMemMap(reserved(), page, 0, physical(), 1)),
      WRONG("cuMemMap.twice", alone, cuMemMap(mapped(), page, 0, physical(), 0)),
      WRONG("cuMemMap.over_the_end", in_context,
            cuMemMap(reserved(page), 2 * page, 0, physical(2 * page), 0)),
      WRONG("cuMemUnmap.null", in_context, cuMemUnmap(0, page)),
      WRONG("cuMemUnmap.not_mapped", alone, cuMemUnmap(reserved(), page)),
      WRONG("cuMemUnmap.size", in_context, cuMemUnmap(mapped(), page / 2)),
      WRONG("cuMemUnmap.allocated", in_context, cuMemUnmap(w.memory, world::bytes)),
      WRONG("cuMemUnmap.zero", in_context, cuMemUnmap(mapped(), 0)),
      WRONG("cuMemSetAccess.null", in_context, cuMemSetAccess(mapped(), page, nullptr, 1)),
      WRONG("cuMemSetAccess.none_of_them", in_context,
            [] {
              auto a = both_ways();
              return cuMemSetAccess(mapped(), page, &a, 0);
            }()),
      WRONG("cuMemSetAccess.not_mapped", in_context, access(reserved(), page, [](auto&) {})),
      WRONG("cuMemSetAccess.device", in_context, access(mapped(), page, [](auto& a) { a.location.id = 99; })),
      WRONG("cuMemSetAccess.flags", in_context,
            access(mapped(), page, [](auto& a) { a.flags = static_cast<CUmemAccess_flags>(2); })),
      WRONG("cuMemSetAccess.size", in_context, access(mapped(), 2 * page, [](auto&) {})),
      WRONG("cuMemSetAccess.zero", in_context, access(mapped(), 0, [](auto&) {})),
      WRONG("cuMemSetAccess.nowhere", in_context, access(nowhere, page, [](auto&) {})),
      WRONG("cuMemSetAccess.location", in_context,
            access(mapped(), page, [](auto& a) { a.location.type = CU_MEM_LOCATION_TYPE_INVALID; })),
      WRONG("cuMemGetAccess.null", in_context,
            [] {
              auto l = here();
              return cuMemGetAccess(nullptr, &l, accessible());
            }()),
      WRONG("cuMemGetAccess.null_location", in_context, cuMemGetAccess(&o.l, nullptr, accessible())),
      WRONG("cuMemGetAccess.nowhere", in_context,
            [] {
              auto l = here();
              return cuMemGetAccess(&o.l, &l, nowhere);
            }()),
      WRONG("cuMemGetAccess.reserved", in_context,
            [] {
              auto l = here();
              return cuMemGetAccess(&o.l, &l, reserved());
            }()),
      WRONG("cuMemGetAllocationGranularity.null", in_context,
            [] {
              auto p = on_device();
              return cuMemGetAllocationGranularity(nullptr, &p, CU_MEM_ALLOC_GRANULARITY_MINIMUM);
            }()),
      WRONG("cuMemGetAllocationGranularity.null_properties", in_context,
            cuMemGetAllocationGranularity(&o.n, nullptr, CU_MEM_ALLOC_GRANULARITY_MINIMUM)),
      WRONG("cuMemGetAllocationGranularity.option", in_context,
            [] {
              auto p = on_device();
              return cuMemGetAllocationGranularity(&o.n, &p,
                                                   static_cast<CUmemAllocationGranularity_flags>(9));
            }()),
      WRONG("cuMemGetAllocationGranularity.device", in_context,
            [] {
              auto p = on_device();
              p.location.id = 99;
              return cuMemGetAllocationGranularity(&o.n, &p, CU_MEM_ALLOC_GRANULARITY_MINIMUM);
            }()),
      WRONG("cuMemGetAllocationPropertiesFromHandle.null", in_context,
            cuMemGetAllocationPropertiesFromHandle(nullptr, physical())),
      WRONG("cuMemGetAllocationPropertiesFromHandle.null_handle", in_context,
            [] {
              CUmemAllocationProp p;
              return cuMemGetAllocationPropertiesFromHandle(&p, 0);
            }()),
      WRONG("cuMemRetainAllocationHandle.nowhere", in_context,
            cuMemRetainAllocationHandle(&o.allocation, as_pointer(nowhere))),
      WRONG("cuMemRetainAllocationHandle.allocated", in_context,
            cuMemRetainAllocationHandle(&o.allocation, as_pointer(w.memory))),
      WRONG("cuMemRetainAllocationHandle.reserved", in_context,
            cuMemRetainAllocationHandle(&o.allocation, as_pointer(reserved()))),
      WRONG("cuMemExportToShareableHandle.not_asked_for", in_context,
            cuMemExportToShareableHandle(&o.i, physical(), CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR, 0)),
      WRONG("cuMemExportToShareableHandle.null_handle", in_context,
            cuMemExportToShareableHandle(&o.i, 0, CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR, 0)),
      WRONG("cuMemExportToShareableHandle.flags", in_context,
            cuMemExportToShareableHandle(&o.i, physical(), CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR, 1)),
      WRONG("cuMemImportFromShareableHandle.bad_descriptor", in_context,
            cuMemImportFromShareableHandle(&o.allocation, reinterpret_cast<void*>(std::intptr_t{999}),
                                           CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR)),
      WRONG("cuMemImportFromShareableHandle.type", in_context,
            cuMemImportFromShareableHandle(&o.allocation, nullptr,
                                           static_cast<CUmemAllocationHandleType>(0x40))),
      WRONG("cuMemMapArrayAsync.null", in_context, cuMemMapArrayAsync(nullptr, 1, w.stream)),
      WRONG("cuMemcpyHtoD.mapped_without_access", in_context, cuMemcpyHtoD(mapped(), host, 64)),
      WRONG("cuMemcpyHtoD.reserved", in_context, cuMemcpyHtoD(reserved(), host, 64)),
      WRONG("cuMemsetD8.mapped_without_access", in_context, cuMemsetD8(mapped(), 0, 64)),
      WRONG("cuMemcpyHtoD.past_what_is_mapped", in_context,
            cuMemcpyHtoD(accessible() + page - 64, host, 128)),
      WRONG("cuMemGetHandleForAddressRange.null", in_context,
            cuMemGetHandleForAddressRange(nullptr, w.memory, page, CU_MEM_RANGE_HANDLE_TYPE_DMA_BUF_FD, 0)),
  };
}

calls pool_calls() {
  return {
      WRONG("cuMemAllocAsync.null", in_context, cuMemAllocAsync(nullptr, 64, w.stream)),
      WRONG("cuMemAllocAsync.zero", in_context, cuMemAllocAsync(&o.d, 0, w.stream)),
      WRONG("cuMemAllocAsync.huge", in_context, cuMemAllocAsync(&o.d, std::size_t{1} << 46, w.stream)),
      WRONG("cuMemAllocAsync.none_default", no_context, cuMemAllocAsync(&o.d, 64, nullptr)),
      WRONG("cuMemAllocAsync.none_stream", no_context, cuMemAllocAsync(&o.d, 64, w.stream)),
      WRONG("cuMemAllocFromPoolAsync.null_pool", in_context,
            cuMemAllocFromPoolAsync(&o.d, 64, nullptr, w.stream)),
      WRONG("cuMemAllocFromPoolAsync.null", in_context,
            cuMemAllocFromPoolAsync(nullptr, 64, w.pool, w.stream)),
      WRONG("cuMemAllocFromPoolAsync.pool_gone", alone,
            cuMemAllocFromPoolAsync(&o.d, 64, pool_gone(), w.stream)),
      WRONG("cuMemFreeAsync.null", in_context, cuMemFreeAsync(0, w.stream)),
      WRONG("cuMemFreeAsync.nowhere", in_context, cuMemFreeAsync(nowhere, w.stream)),
      WRONG("cuMemFreeAsync.inside", in_context, cuMemFreeAsync(from_stream() + 512, w.stream)),
      WRONG("cuMemFreeAsync.pinned", in_context,
            cuMemFreeAsync(reinterpret_cast<CUdeviceptr>(w.pinned), w.stream)),
      WRONG_DO("cuMemFreeAsync.of_cuMemAlloc", in_context,
               {
                 NEED(cuMemAlloc(&o.d, 4096));
                 return cuMemFreeAsync(o.d, w.stream);
               }),
      WRONG_DO("cuMemFreeAsync.twice", in_context,
               {
                 const CUdeviceptr d = from_stream();
                 NEED(cuMemFreeAsync(d, w.stream));
                 return cuMemFreeAsync(d, w.stream);
               }),
      WRONG_DO("cuMemFree.of_cuMemAllocAsync_twice", in_context,
               {
                 const CUdeviceptr d = from_stream();
                 NEED(cuMemFree(d));
                 return cuMemFree(d);
               }),
      WRONG_DO("cuMemcpyHtoD.freed_in_stream", in_context,
               {
                 const CUdeviceptr d = from_stream();
                 NEED(cuMemFreeAsync(d, w.stream));
                 NEED(cuStreamSynchronize(w.stream));
                 NEED(cuMemPoolTrimTo(w.pool, 0));
                 return cuMemcpyHtoD(d, host, 64);
               }),
      WRONG("cuMemPoolCreate.null", in_context,
            [] {
              auto p = pool_on_device();
              return cuMemPoolCreate(nullptr, &p);
            }()),
      WRONG("cuMemPoolCreate.null_properties", in_context, cuMemPoolCreate(&o.pool, nullptr)),
      WRONG("cuMemPoolCreate.device", in_context, create_pool([](auto& p) { p.location.id = 99; })),
      WRONG("cuMemPoolCreate.no_location", in_context,
            create_pool([](auto& p) { p.location.type = CU_MEM_LOCATION_TYPE_INVALID; })),
      WRONG("cuMemPoolCreate.no_type", in_context,
            create_pool([](auto& p) { p.allocType = CU_MEM_ALLOCATION_TYPE_INVALID; })),
      WRONG("cuMemPoolCreate.handle_type", in_context,
            create_pool([](auto& p) { p.handleTypes = static_cast<CUmemAllocationHandleType>(0x40); })),
      WRONG("cuMemPoolCreate.win32", in_context,
            create_pool([](auto& p) { p.handleTypes = CU_MEM_HANDLE_TYPE_WIN32; })),
      WRONG("cuMemPoolCreate.usage", in_context, create_pool([](auto& p) { p.usage = 0x80; })),
      WRONG("cuMemPoolDestroy.null", in_context, cuMemPoolDestroy(nullptr)),
      WRONG("cuMemPoolDestroy.default", in_context, cuMemPoolDestroy(w.pool)),
      WRONG("cuMemPoolDestroy.twice", alone, cuMemPoolDestroy(pool_gone())),
      WRONG("cuMemPoolTrimTo.null", in_context, cuMemPoolTrimTo(nullptr, 0)),
      WRONG("cuMemPoolTrimTo.gone", alone, cuMemPoolTrimTo(pool_gone(), 0)),
      WRONG("cuMemPoolSetAttribute.null_pool", in_context,
            cuMemPoolSetAttribute(nullptr, CU_MEMPOOL_ATTR_RELEASE_THRESHOLD, &o.l)),
      WRONG("cuMemPoolSetAttribute.null", in_context,
            cuMemPoolSetAttribute(w.pool, CU_MEMPOOL_ATTR_RELEASE_THRESHOLD, nullptr)),
      WRONG("cuMemPoolSetAttribute.unknown", in_context,
            cuMemPoolSetAttribute(w.pool, static_cast<CUmemPool_attribute>(99), &o.l)),
      WRONG("cuMemPoolSetAttribute.read_only", in_context,
            cuMemPoolSetAttribute(w.pool, CU_MEMPOOL_ATTR_RESERVED_MEM_CURRENT, &o.l)),
      WRONG("cuMemPoolSetAttribute.high_not_zero", in_context,
            [] {
              cuuint64_t one = 1;
              return cuMemPoolSetAttribute(w.pool, CU_MEMPOOL_ATTR_USED_MEM_HIGH, &one);
            }()),
      WRONG("cuMemPoolGetAttribute.unknown", in_context,
            cuMemPoolGetAttribute(w.pool, static_cast<CUmemPool_attribute>(99), &o.l)),
      WRONG("cuMemPoolGetAttribute.null", in_context,
            cuMemPoolGetAttribute(w.pool, CU_MEMPOOL_ATTR_RELEASE_THRESHOLD, nullptr)),
      WRONG("cuMemPoolGetAttribute.null_pool", in_context,
            cuMemPoolGetAttribute(nullptr, CU_MEMPOOL_ATTR_RELEASE_THRESHOLD, &o.l)),
      WRONG("cuMemPoolSetAccess.null", in_context, cuMemPoolSetAccess(own_pool(), nullptr, 1)),
      WRONG("cuMemPoolSetAccess.device", in_context,
            [] {
              auto a = both_ways();
              a.location.id = 99;
              return cuMemPoolSetAccess(own_pool(), &a, 1);
            }()),
      WRONG("cuMemPoolSetAccess.own_none", in_context,
            [] {
              auto a = both_ways();
              a.flags = CU_MEM_ACCESS_FLAGS_PROT_NONE;
              return cuMemPoolSetAccess(own_pool(), &a, 1);
            }()),
      WRONG("cuMemPoolGetAccess.null", in_context,
            [] {
              auto l = here();
              return cuMemPoolGetAccess(nullptr, w.pool, &l);
            }()),
      WRONG("cuMemPoolGetAccess.device", in_context,
            [] {
              auto l = location(CU_MEM_LOCATION_TYPE_DEVICE, 99);
              CUmemAccess_flags f;
              return cuMemPoolGetAccess(&f, w.pool, &l);
            }()),
      WRONG("cuMemGetDefaultMemPool.null", in_context,
            [] {
              auto l = here();
              return cuMemGetDefaultMemPool(nullptr, &l, CU_MEM_ALLOCATION_TYPE_PINNED);
            }()),
      WRONG("cuMemGetDefaultMemPool.type", in_context,
            [] {
              auto l = here();
              return cuMemGetDefaultMemPool(&o.pool, &l, CU_MEM_ALLOCATION_TYPE_INVALID);
            }()),
      WRONG("cuMemGetDefaultMemPool.device", in_context,
            [] {
              auto l = location(CU_MEM_LOCATION_TYPE_DEVICE, 99);
              return cuMemGetDefaultMemPool(&o.pool, &l, CU_MEM_ALLOCATION_TYPE_PINNED);
            }()),
      WRONG("cuMemSetMemPool.null", in_context,
            [] {
              auto l = here();
              return cuMemSetMemPool(&l, CU_MEM_ALLOCATION_TYPE_PINNED, nullptr);
            }()),
      WRONG("cuMemPoolExportToShareableHandle.default_pool", in_context,
            cuMemPoolExportToShareableHandle(&o.i, w.pool, CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR, 0)),
      WRONG("cuMemPoolExportToShareableHandle.not_asked_for", in_context,
            cuMemPoolExportToShareableHandle(&o.i, own_pool(), CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR, 0)),
      WRONG("cuMemPoolImportFromShareableHandle.bad_descriptor", in_context,
            cuMemPoolImportFromShareableHandle(&o.pool, reinterpret_cast<void*>(std::intptr_t{999}),
                                               CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR, 0)),
      WRONG("cuMemPoolExportPointer.not_exported", in_context,
            [] {
              CUmemPoolPtrExportData data;
              return cuMemPoolExportPointer(&data, from_stream());
            }()),
      WRONG("cuMemPoolExportPointer.nowhere", in_context,
            [] {
              CUmemPoolPtrExportData data;
              return cuMemPoolExportPointer(&data, nowhere);
            }()),
  };
}

calls pointer_calls() {
  return {
      WRONG("cuPointerGetAttribute.null", in_context,
            cuPointerGetAttribute(nullptr, CU_POINTER_ATTRIBUTE_CONTEXT, w.memory)),
      WRONG("cuPointerGetAttribute.unknown", in_context,
            cuPointerGetAttribute(&o.l, static_cast<CUpointer_attribute>(99), w.memory)),
      WRONG("cuPointerGetAttribute.zero", in_context,
            cuPointerGetAttribute(&o.l, static_cast<CUpointer_attribute>(0), w.memory)),
      WRONG("cuPointerGetAttribute.pageable_context", in_context,
            cuPointerGetAttribute(&o.p, CU_POINTER_ATTRIBUTE_CONTEXT, reinterpret_cast<CUdeviceptr>(host))),
      WRONG(
          "cuPointerGetAttribute.pageable_type", in_context,
          cuPointerGetAttribute(&o.u, CU_POINTER_ATTRIBUTE_MEMORY_TYPE, reinterpret_cast<CUdeviceptr>(host))),
      WRONG("cuPointerGetAttribute.pageable_device_pointer", in_context,
            cuPointerGetAttribute(&o.p, CU_POINTER_ATTRIBUTE_DEVICE_POINTER,
                                  reinterpret_cast<CUdeviceptr>(host))),
      WRONG("cuPointerGetAttribute.host_pointer_of_device", in_context,
            cuPointerGetAttribute(&o.p, CU_POINTER_ATTRIBUTE_HOST_POINTER, w.memory)),
      WRONG("cuPointerGetAttribute.p2p_tokens", in_context,
            [] {
              CUDA_POINTER_ATTRIBUTE_P2P_TOKENS t;
              return cuPointerGetAttribute(&t, CU_POINTER_ATTRIBUTE_P2P_TOKENS, w.memory);
            }()),
      WRONG("cuPointerGetAttribute.null_pointer_type", in_context,
            cuPointerGetAttribute(&o.u, CU_POINTER_ATTRIBUTE_MEMORY_TYPE, 0)),
      WRONG("cuPointerGetAttribute.null_pointer_ordinal", in_context,
            cuPointerGetAttribute(&o.i, CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL, 0)),
      WRONG("cuPointerGetAttribute.null_pointer_range", in_context,
            cuPointerGetAttribute(&o.p, CU_POINTER_ATTRIBUTE_RANGE_START_ADDR, 0)),
      WRONG("cuPointerGetAttribute.nowhere_type", in_context,
            cuPointerGetAttribute(&o.u, CU_POINTER_ATTRIBUTE_MEMORY_TYPE, nowhere)),
      WRONG("cuPointerGetAttribute.nowhere_managed", in_context,
            cuPointerGetAttribute(&o.u, CU_POINTER_ATTRIBUTE_IS_MANAGED, nowhere)),
      WRONG("cuPointerGetAttribute.none_current", no_context,
            cuPointerGetAttribute(&o.u, CU_POINTER_ATTRIBUTE_MEMORY_TYPE, w.memory)),
      WRONG("cuPointerGetAttribute.reserved_type", in_context,
            cuPointerGetAttribute(&o.u, CU_POINTER_ATTRIBUTE_MEMORY_TYPE, reserved())),
      WRONG("cuPointerGetAttributes.nulls", in_context,
            cuPointerGetAttributes(1, nullptr, nullptr, w.memory)),
      WRONG("cuPointerGetAttributes.none_of_them", in_context,
            cuPointerGetAttributes(0, nullptr, nullptr, w.memory)),
      WRONG_DO("cuPointerGetAttributes.unknown", in_context,
               {
                 CUpointer_attribute what = static_cast<CUpointer_attribute>(99);
                 void* out = &o.l;
                 return cuPointerGetAttributes(1, &what, &out, w.memory);
               }),
      WRONG_DO("cuPointerGetAttributes.pageable", in_context,
               {
                 CUpointer_attribute what = CU_POINTER_ATTRIBUTE_MEMORY_TYPE;
                 void* out = &o.l;
                 return cuPointerGetAttributes(1, &what, &out, reinterpret_cast<CUdeviceptr>(host));
               }),
      WRONG("cuPointerSetAttribute.null", in_context,
            cuPointerSetAttribute(nullptr, CU_POINTER_ATTRIBUTE_SYNC_MEMOPS, w.memory)),
      WRONG("cuPointerSetAttribute.read_only", in_context,
            cuPointerSetAttribute(&o.l, CU_POINTER_ATTRIBUTE_MEMORY_TYPE, w.memory)),
      WRONG(
          "cuPointerSetAttribute.pageable", in_context,
          cuPointerSetAttribute(&o.u, CU_POINTER_ATTRIBUTE_SYNC_MEMOPS, reinterpret_cast<CUdeviceptr>(host))),
      WRONG("cuPointerSetAttribute.value", in_context,
            [] {
              unsigned two = 2;
              return cuPointerSetAttribute(&two, CU_POINTER_ATTRIBUTE_SYNC_MEMOPS, w.memory);
            }()),
      WRONG("cuPointerSetAttribute.nowhere", in_context,
            cuPointerSetAttribute(&o.u, CU_POINTER_ATTRIBUTE_SYNC_MEMOPS, nowhere)),
  };
}

calls managed_calls() {
  return {
      WRONG("cuMemAllocManaged.null", in_context, cuMemAllocManaged(nullptr, 64, CU_MEM_ATTACH_GLOBAL)),
      WRONG("cuMemAllocManaged.zero", in_context, cuMemAllocManaged(&o.d, 0, CU_MEM_ATTACH_GLOBAL)),
      WRONG("cuMemAllocManaged.flags", in_context, cuMemAllocManaged(&o.d, 64, 8)),
      WRONG("cuMemAllocManaged.no_flags", in_context, cuMemAllocManaged(&o.d, 64, 0)),
      WRONG("cuMemAllocManaged.single", in_context, cuMemAllocManaged(&o.d, 64, CU_MEM_ATTACH_SINGLE)),
      WRONG("cuMemAllocManaged.none", no_context, cuMemAllocManaged(&o.d, 64, CU_MEM_ATTACH_GLOBAL)),
      WRONG("cuMemAdvise.null", in_context, cuMemAdvise(0, page, CU_MEM_ADVISE_SET_READ_MOSTLY, here())),
      WRONG("cuMemAdvise.not_managed", in_context,
            cuMemAdvise(w.memory, page, CU_MEM_ADVISE_SET_READ_MOSTLY, here())),
      WRONG("cuMemAdvise.nowhere", in_context,
            cuMemAdvise(nowhere, page, CU_MEM_ADVISE_SET_READ_MOSTLY, here())),
      WRONG("cuMemAdvise.unknown", in_context,
            cuMemAdvise(managed(), page, static_cast<CUmem_advise>(99), here())),
      WRONG("cuMemAdvise.zero", in_context, cuMemAdvise(managed(), 0, CU_MEM_ADVISE_SET_READ_MOSTLY, here())),
      WRONG("cuMemAdvise.over_the_end", in_context,
            cuMemAdvise(managed(), 4 * page, CU_MEM_ADVISE_SET_READ_MOSTLY, here())),
      WRONG("cuMemAdvise.device", in_context,
            cuMemAdvise(managed(), page, CU_MEM_ADVISE_SET_PREFERRED_LOCATION,
                        location(CU_MEM_LOCATION_TYPE_DEVICE, 99))),
      WRONG("cuMemAdvise.location", in_context,
            cuMemAdvise(managed(), page, CU_MEM_ADVISE_SET_PREFERRED_LOCATION,
                        location(CU_MEM_LOCATION_TYPE_INVALID, 0))),
      WRONG("cuMemPrefetchAsync.null", in_context, cuMemPrefetchAsync(0, page, here(), 0, w.stream)),
      WRONG("cuMemPrefetchAsync.not_managed", in_context,
            cuMemPrefetchAsync(w.memory, page, here(), 0, w.stream)),
      WRONG("cuMemPrefetchAsync.nowhere", in_context, cuMemPrefetchAsync(nowhere, page, here(), 0, w.stream)),
      WRONG("cuMemPrefetchAsync.zero", in_context, cuMemPrefetchAsync(managed(), 0, here(), 0, w.stream)),
      WRONG("cuMemPrefetchAsync.over_the_end", in_context,
            cuMemPrefetchAsync(managed(), 4 * page, here(), 0, w.stream)),
      WRONG("cuMemPrefetchAsync.device", in_context,
            cuMemPrefetchAsync(managed(), page, location(CU_MEM_LOCATION_TYPE_DEVICE, 99), 0, w.stream)),
      WRONG("cuMemPrefetchAsync.location", in_context,
            cuMemPrefetchAsync(managed(), page, location(CU_MEM_LOCATION_TYPE_INVALID, 0), 0, w.stream)),
      WRONG("cuMemPrefetchAsync.flags", in_context, cuMemPrefetchAsync(managed(), page, here(), 1, w.stream)),
      WRONG("cuMemRangeGetAttribute.null", in_context,
            cuMemRangeGetAttribute(nullptr, 4, CU_MEM_RANGE_ATTRIBUTE_READ_MOSTLY, managed(), page)),
      WRONG("cuMemRangeGetAttribute.size", in_context,
            cuMemRangeGetAttribute(&o.i, 3, CU_MEM_RANGE_ATTRIBUTE_READ_MOSTLY, managed(), page)),
      WRONG("cuMemRangeGetAttribute.unknown", in_context,
            cuMemRangeGetAttribute(&o.i, 4, static_cast<CUmem_range_attribute>(99), managed(), page)),
      WRONG("cuMemRangeGetAttribute.not_managed", in_context,
            cuMemRangeGetAttribute(&o.i, 4, CU_MEM_RANGE_ATTRIBUTE_READ_MOSTLY, w.memory, page)),
      WRONG("cuMemRangeGetAttribute.zero", in_context,
            cuMemRangeGetAttribute(&o.i, 4, CU_MEM_RANGE_ATTRIBUTE_READ_MOSTLY, managed(), 0)),
      WRONG("cuMemRangeGetAttributes.nulls", in_context,
            cuMemRangeGetAttributes(nullptr, nullptr, nullptr, 1, managed(), page)),
      WRONG("cuStreamAttachMemAsync.null", in_context,
            cuStreamAttachMemAsync(w.stream, 0, 0, CU_MEM_ATTACH_GLOBAL)),
      WRONG("cuStreamAttachMemAsync.not_managed", in_context,
            cuStreamAttachMemAsync(w.stream, w.memory, 0, CU_MEM_ATTACH_GLOBAL)),
      WRONG("cuStreamAttachMemAsync.flags", in_context, cuStreamAttachMemAsync(w.stream, managed(), 0, 64)),
      WRONG("cuStreamAttachMemAsync.length", in_context,
            cuStreamAttachMemAsync(w.stream, managed(), 100, CU_MEM_ATTACH_SINGLE)),
      WRONG("cuStreamAttachMemAsync.default_single", in_context,
            cuStreamAttachMemAsync(nullptr, managed(), 0, CU_MEM_ATTACH_SINGLE)),
      WRONG("cuMemFree.managed_inside", in_context, cuMemFree(managed() + 4096)),
      WRONG_DO("cuMemFree.managed_twice", in_context,
               {
                 const CUdeviceptr d = managed();
                 NEED(cuMemFree(d));
                 return cuMemFree(d);
               }),
      WRONG("cuMemHostRegister.managed", in_context, cuMemHostRegister(as_pointer(managed()), page, 0)),
      WRONG("cuMemHostGetDevicePointer.managed", in_context,
            cuMemHostGetDevicePointer(&o.d, as_pointer(managed()), 0)),
      WRONG("cuMemDiscardBatchAsync.nulls", in_context,
            cuMemDiscardBatchAsync(nullptr, nullptr, 1, 0, w.stream)),
      WRONG("cuMemPrefetchBatchAsync.nulls", in_context,
            cuMemPrefetchBatchAsync(nullptr, nullptr, 1, nullptr, nullptr, 0, 0, w.stream)),
  };
}

}  // namespace wrong_calls
