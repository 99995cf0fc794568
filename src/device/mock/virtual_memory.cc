// Virtual memory management of the mock: address ranges are reserved mappings, physical memory is a memfd, so
// one allocation may appear at several addresses and keeps its contents across unmapping.
#include <sys/mman.h>
#include <unistd.h>

#include "device/mock/state.hh"

namespace outboard::device::mock {
namespace {

constexpr std::uint64_t granularity = 2 << 20;

bool whole(std::uint64_t value) { return value != 0 && value % granularity == 0; }
void* pointer(CUdeviceptr address) { return reinterpret_cast<void*>(address); }

bool reserved(const state& s, std::uint64_t address, std::uint64_t size) {
  auto at = s.reservations.upper_bound(address);
  if (at == s.reservations.begin()) return false;
  --at;
  return size <= at->second && address - at->first <= at->second - size;
}

CUresult reserve(CUdeviceptr* out, std::size_t size, std::size_t, CUdeviceptr hint, unsigned long long) {
  if (!whole(size)) return CUDA_ERROR_INVALID_VALUE;
  state& s = here();
  std::lock_guard lock(s.mutex);
  const int flags = MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE;
  void* got = MAP_FAILED;
  if (hint != 0) got = ::mmap(pointer(hint), size, PROT_NONE, flags | MAP_FIXED_NOREPLACE, -1, 0);
  if (got != MAP_FAILED && got != pointer(hint)) {  // kernels before 4.17 treat the flag as a mere hint
    ::munmap(got, size);
    got = MAP_FAILED;
  }
  if (got == MAP_FAILED) {
    // Reserves enough to cut a 2 MiB aligned range out of it.
    got = ::mmap(nullptr, size + granularity, PROT_NONE, flags, -1, 0);
    if (got == MAP_FAILED) return CUDA_ERROR_OUT_OF_MEMORY;
    const auto start = reinterpret_cast<std::uint64_t>(got);
    const std::uint64_t aligned = (start + granularity - 1) / granularity * granularity;
    if (aligned != start) ::munmap(got, aligned - start);
    ::munmap(pointer(aligned + size), start + granularity - aligned);
    got = pointer(aligned);
  }
  s.reservations[reinterpret_cast<std::uint64_t>(got)] = size;
  return *out = reinterpret_cast<CUdeviceptr>(got), CUDA_SUCCESS;
}

CUresult release_range(CUdeviceptr address, std::size_t size) {
  state& s = here();
  std::lock_guard lock(s.mutex);
  const auto at = s.reservations.find(address);
  if (at == s.reservations.end() || at->second != size) return CUDA_ERROR_INVALID_VALUE;
  const auto mapped = s.mappings.lower_bound(address);
  if (mapped != s.mappings.end() && mapped->first < address + size) return CUDA_ERROR_INVALID_VALUE;
  s.reservations.erase(at);
  ::munmap(pointer(address), size);
  return CUDA_SUCCESS;
}

CUresult create(CUmemGenericAllocationHandle* handle, std::size_t size, const CUmemAllocationProp* properties,
                unsigned long long) {
  if (!whole(size)) return CUDA_ERROR_INVALID_VALUE;
  state& s = here();
  std::lock_guard lock(s.mutex);
  if (size > s.total_memory - s.used_memory) return CUDA_ERROR_OUT_OF_MEMORY;
  physical block{::memfd_create("outboard-mock", MFD_CLOEXEC), size, 1, *properties};
  if (block.fd < 0) return CUDA_ERROR_OUT_OF_MEMORY;
  if (::ftruncate(block.fd, static_cast<off_t>(size)) != 0)
    return ::close(block.fd), CUDA_ERROR_OUT_OF_MEMORY;
  s.used_memory += size;
  *handle = s.make_handle();
  s.physicals[*handle] = block;
  return CUDA_SUCCESS;
}

void drop(state& s, CUmemGenericAllocationHandle handle) {
  const auto at = s.physicals.find(handle);
  if (at == s.physicals.end() || --at->second.references > 0) return;
  ::close(at->second.fd);
  s.used_memory -= at->second.size;
  s.physicals.erase(at);
}

CUresult release(CUmemGenericAllocationHandle handle) {
  state& s = here();
  std::lock_guard lock(s.mutex);
  if (s.teams.erase(handle) != 0) return CUDA_SUCCESS;
  if (!s.physicals.contains(handle)) return CUDA_ERROR_INVALID_VALUE;
  return drop(s, handle), CUDA_SUCCESS;
}

CUresult map(CUdeviceptr address, std::size_t size, std::size_t offset, CUmemGenericAllocationHandle handle,
             unsigned long long) {
  state& s = here();
  std::lock_guard lock(s.mutex);
  const auto at = s.physicals.find(handle);
  if (at == s.physicals.end() || !whole(size) || offset > at->second.size ||
      size > at->second.size - offset || !reserved(s, address, size)) {
    return CUDA_ERROR_INVALID_VALUE;
  }
  void* got = ::mmap(pointer(address), size, PROT_NONE, MAP_SHARED | MAP_FIXED, at->second.fd,
                     static_cast<off_t>(offset));
  if (got == MAP_FAILED) return CUDA_ERROR_OUT_OF_MEMORY;
  ++at->second.references;
  s.mappings[address] = {size, handle, false};
  return CUDA_SUCCESS;
}

CUresult unmap(CUdeviceptr address, std::size_t size) {
  state& s = here();
  std::lock_guard lock(s.mutex);
  for (std::uint64_t done = 0; done < size;) {
    const auto at = s.mappings.find(address + done);
    if (at == s.mappings.end() || at->second.size > size - done) return CUDA_ERROR_INVALID_VALUE;
    ::mmap(pointer(at->first), at->second.size, PROT_NONE,
           MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED, -1, 0);
    done += at->second.size;
    drop(s, at->second.from);
    s.mappings.erase(at);
  }
  return CUDA_SUCCESS;
}

CUresult set_access(CUdeviceptr address, std::size_t size, const CUmemAccessDesc* access, std::size_t count) {
  state& s = here();
  std::lock_guard lock(s.mutex);
  if (count != 1 || !reserved(s, address, size)) return CUDA_ERROR_INVALID_VALUE;
  const bool accessible = access->flags != CU_MEM_ACCESS_FLAGS_PROT_NONE;
  if (::mprotect(pointer(address), size, accessible ? PROT_READ | PROT_WRITE : PROT_NONE) != 0)
    return CUDA_ERROR_INVALID_VALUE;
  for (auto at = s.mappings.lower_bound(address); at != s.mappings.end() && at->first < address + size; ++at)
    at->second.accessible = accessible;
  return CUDA_SUCCESS;
}

CUresult get_granularity(std::size_t* size, const CUmemAllocationProp*, CUmemAllocationGranularity_flags) {
  return *size = granularity, CUDA_SUCCESS;
}

CUresult get_properties(CUmemAllocationProp* properties, CUmemGenericAllocationHandle handle) {
  state& s = here();
  std::lock_guard lock(s.mutex);
  const auto at = s.physicals.find(handle);
  if (at == s.physicals.end()) return CUDA_ERROR_INVALID_VALUE;
  return *properties = at->second.prop, CUDA_SUCCESS;
}

}  // namespace

bool is_mapped(const state& s, std::uint64_t address, std::uint64_t bytes) {
  const std::uint64_t end = address + bytes;
  if (end < address) return false;
  auto at = s.mappings.upper_bound(address);
  if (at == s.mappings.begin()) return false;
  for (--at; at != s.mappings.end() && at->first <= address && at->second.accessible; ++at) {
    if (end - at->first <= at->second.size) return true;
    address = at->first + at->second.size;
  }
  return false;
}

void set_virtual_memory_behaviours(api::driver_table& b) {
  b.cuMemAddressReserve = reserve;
  b.cuMemAddressFree = release_range;
  b.cuMemCreate = create;
  b.cuMemRelease = release;
  b.cuMemMap = map;
  b.cuMemUnmap = unmap;
  b.cuMemSetAccess = set_access;
  b.cuMemGetAllocationGranularity = get_granularity;
  b.cuMemGetAllocationPropertiesFromHandle = get_properties;
}

}  // namespace outboard::device::mock
