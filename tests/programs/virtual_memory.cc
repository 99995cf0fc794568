// Virtual memory management through the driver API: reserve, create, map, access, the same memory at two
// addresses, growing a range in place, handles retained by address, and the driver's refusals.
#include <cuda.h>

#include "common.hh"

namespace {

struct setting {
  CUdevice device = 0;
  std::size_t granularity = 0;
  CUmemAllocationProp memory{};
  CUmemAccessDesc all{};
};

setting prepare() {
  setting s;
  CUcontext context;
  MUST(cuInit(0));
  MUST(cuDeviceGet(&s.device, 0));
  MUST(cuDevicePrimaryCtxRetain(&context, s.device));
  MUST(cuCtxSetCurrent(context));
  int supported = 0;
  MUST(cuDeviceGetAttribute(&supported, CU_DEVICE_ATTRIBUTE_VIRTUAL_MEMORY_MANAGEMENT_SUPPORTED, s.device));
  EXPECT(supported == 1);
  s.memory.type = CU_MEM_ALLOCATION_TYPE_PINNED;
  s.memory.location = {CU_MEM_LOCATION_TYPE_DEVICE, s.device};
  s.all.location = s.memory.location;
  s.all.flags = CU_MEM_ACCESS_FLAGS_PROT_READWRITE;
  MUST(cuMemGetAllocationGranularity(&s.granularity, &s.memory, CU_MEM_ALLOC_GRANULARITY_MINIMUM));
  EXPECT(s.granularity >= 4096 && (s.granularity & (s.granularity - 1)) == 0);
  return s;
}

unsigned word_at(CUdeviceptr at) {
  unsigned value = 0;
  MUST(cuMemcpyDtoH(&value, at, sizeof value));
  return value;
}

/// One physical block at two addresses: what is written through one is read through the other, and lives on
/// when the handle and one mapping are gone.
void aliases(const setting& s) {
  const std::size_t g = s.granularity;
  CUdeviceptr first, second;
  CUmemGenericAllocationHandle block;
  MUST(cuMemAddressReserve(&first, g, 0, 0, 0));
  MUST(cuMemAddressReserve(&second, 2 * g, 0, 0, 0));
  EXPECT(first % g == 0 && second % g == 0);
  MUST(cuMemCreate(&block, g, &s.memory, 0));
  MUST(cuMemMap(first, g, 0, block, 0));
  MUST(cuMemSetAccess(first, g, &s.all, 1));
  MUST(cuMemsetD32(first, 7, g / 4));
  MUST(cuMemMap(second + g, g, 0, block, 0));
  MUST(cuMemSetAccess(second + g, g, &s.all, 1));
  MUST(cuMemsetD32(second + g + 64, 9, 1));
  EXPECT(word_at(first) == 7 && word_at(first + 64) == 9);
  unsigned long long flags = 99;
  MUST(cuMemGetAccess(&flags, &s.all.location, first));
  EXPECT(flags == CU_MEM_ACCESS_FLAGS_PROT_READWRITE);
  MUST(cuMemRelease(block));
  MUST(cuMemUnmap(first, g));
  EXPECT(word_at(second + g) == 7);
  CUmemGenericAllocationHandle again;
  MUST(cuMemRetainAllocationHandle(&again, reinterpret_cast<void*>(second + g + 4096)));
  CUmemAllocationProp told{};
  MUST(cuMemGetAllocationPropertiesFromHandle(&told, again));
  EXPECT(told.type == CU_MEM_ALLOCATION_TYPE_PINNED && told.location.id == s.device);
  MUST(cuMemMap(first, g, 0, again, 0));
  MUST(cuMemSetAccess(first, g, &s.all, 1));
  EXPECT(word_at(first + 64) == 9);
  MUST(cuMemRelease(again));
  MUST(cuMemUnmap(first, g));
  MUST(cuMemUnmap(second + g, g));
  MUST(cuMemAddressFree(first, g));
  MUST(cuMemAddressFree(second, 2 * g));
}

/// As growing arrays use it: one range, memory added behind what is there, addresses unchanged.
void grows(const setting& s) {
  constexpr int parts = 8;
  const std::size_t g = s.granularity;
  CUdeviceptr range;
  std::size_t free_before = 0, free_after = 0, total = 0;
  MUST(cuMemGetInfo(&free_before, &total));
  MUST(cuMemAddressReserve(&range, 64 * g, 0, 0, 0));
  CUmemGenericAllocationHandle part[parts];
  for (int i = 0; i < parts; i++) {
    MUST(cuMemCreate(&part[i], g, &s.memory, 0));
    MUST(cuMemMap(range + i * g, g, 0, part[i], 0));
    MUST(cuMemSetAccess(range + i * g, g, &s.all, 1));
    MUST(cuMemsetD32(range + i * g, 100 + i, g / 4));
  }
  MUST(cuMemGetInfo(&free_after, &total));
  EXPECT(free_before - free_after >= parts * g);
  std::vector<unsigned> all(parts * g / 4);
  MUST(cuMemcpyDtoH(all.data(), range, parts * g));
  for (std::size_t i = 0; i < all.size(); i += 997) EXPECT(all[i] == 100 + i / (g / 4));
  MUST(cuMemsetD32(range + g - 16, 5, 8));  // across two mappings
  EXPECT(word_at(range + g - 4) == 5 && word_at(range + g + 12) == 5 && word_at(range + g + 16) == 101);
  MUST(cuMemUnmap(range, parts * g));
  for (CUmemGenericAllocationHandle p : part) MUST(cuMemRelease(p));
  MUST(cuMemAddressFree(range, 64 * g));
}

void refusals(const setting& s) {
  const std::size_t g = s.granularity;
  CUdeviceptr range, other = 0;
  CUmemGenericAllocationHandle block, never;
  MUST(cuMemAddressReserve(&range, 4 * g, 0, 0, 0));
  MUST(cuMemCreate(&block, g, &s.memory, 0));
  EXPECT(cuMemAddressReserve(&other, 0, 0, 0, 0) == CUDA_ERROR_INVALID_VALUE);
  EXPECT(cuMemAddressReserve(&other, g + 1, 0, 0, 0) == CUDA_ERROR_INVALID_VALUE);
  EXPECT(cuMemCreate(&never, g / 2, &s.memory, 0) == CUDA_ERROR_INVALID_VALUE);
  EXPECT(cuMemCreate(&never, ~0ull / g * g, &s.memory, 0) != CUDA_SUCCESS);
  EXPECT(cuMemMap(range, 2 * g, 0, block, 0) == CUDA_ERROR_NOT_SUPPORTED);  // larger than the block
  EXPECT(cuMemMap(range, g, g, block, 0) != CUDA_SUCCESS);                  // behind its end
  EXPECT(cuMemMap(range + 4 * g, g, 0, block, 0) != CUDA_SUCCESS);          // outside the range
  MUST(cuMemMap(range, g, 0, block, 0));
  EXPECT(cuMemMap(range, g, 0, block, 0) != CUDA_SUCCESS);  // over a mapping
  EXPECT(cuMemUnmap(range, g / 2) != CUDA_SUCCESS);         // a part
  EXPECT(cuMemSetAccess(range + g, g, &s.all, 1) != CUDA_SUCCESS);
  EXPECT(cuMemAddressFree(range, 4 * g) != CUDA_SUCCESS);  // still mapped
  MUST(cuMemUnmap(range, 3 * g));                          // with what lies behind it
  MUST(cuMemUnmap(range, g));                              // and once more
  EXPECT(cuMemAddressFree(range, 2 * g) != CUDA_SUCCESS);  // another size
  MUST(cuMemAddressFree(range, 4 * g));
  MUST(cuMemRelease(block));
  EXPECT(cuMemRelease(block) == CUDA_ERROR_INVALID_VALUE);
  EXPECT(cuMemRetainAllocationHandle(&never, reinterpret_cast<void*>(range)) == CUDA_ERROR_INVALID_VALUE);
}

}  // namespace

int main() {
  const setting s = prepare();
  aliases(s);
  grows(s);
  refusals(s);
  return pass("virtual_memory");
}
