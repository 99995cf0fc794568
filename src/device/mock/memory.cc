// Memory of the mock: host memory behind device addresses, so that copies round-trip. Every copy is done
// before the call returns, which the asynchronous entries may do too.
#include <atomic>
#include <cstdlib>
#include <cstring>

#include "device/mock/state.hh"

namespace outboard::device::mock {
namespace {

constexpr std::size_t global_size = 4096;

void* pointer(CUdeviceptr address) { return reinterpret_cast<void*>(address); }

/// True if the whole range is in one block of `blocks` (address, size).
template <class Blocks>
bool within(const Blocks& blocks, std::uint64_t address, std::uint64_t bytes) {
  auto at = blocks.upper_bound(address);
  if (at == blocks.begin()) return false;
  --at;
  return address - at->first <= at->second && bytes <= at->second - (address - at->first);
}

}  // namespace

bool is_given(CUdeviceptr address, std::uint64_t bytes) {
  state& s = here();
  std::lock_guard lock(s.mutex);
  for (const auto* blocks : {&s.allocations, &s.host_blocks, &s.registered})
    if (within(*blocks, address, bytes)) return true;
  for (const auto& [name, at] : s.globals)
    if (address >= at && address - at <= global_size && bytes <= global_size - (address - at)) return true;
  return is_mapped(s, address, bytes);
}

namespace {

/// Returns zeroed memory, 512-aligned as in a driver; 0 if the host has none.
std::uint64_t allocate(std::uint64_t bytes) {
  const std::uint64_t size = (bytes + 511) & ~std::uint64_t{511};
  void* block = size < bytes ? nullptr : std::aligned_alloc(512, size);
  if (block != nullptr) std::memset(block, 0, size);
  return reinterpret_cast<std::uint64_t>(block);
}

CUresult mem_alloc(CUdeviceptr* address, std::size_t bytes) {
  if (bytes == 0) return CUDA_ERROR_INVALID_VALUE;
  state& s = here();
  std::lock_guard lock(s.mutex);
  if (bytes > s.total_memory - s.used_memory) return CUDA_ERROR_OUT_OF_MEMORY;
  const std::uint64_t block = allocate(bytes);
  if (block == 0) return CUDA_ERROR_OUT_OF_MEMORY;
  s.allocations[block] = bytes;
  s.used_memory += bytes;
  return *address = block, CUDA_SUCCESS;
}

CUresult mem_alloc_managed(CUdeviceptr* address, std::size_t bytes, unsigned) {
  return mem_alloc(address, bytes);
}

CUresult mem_alloc_pitch(CUdeviceptr* address, std::size_t* pitch, std::size_t width, std::size_t height,
                         unsigned) {
  const std::size_t row = (width + 511) & ~std::size_t{511};
  if (const CUresult result = mem_alloc(address, row * height); result != CUDA_SUCCESS) return result;
  return *pitch = row, CUDA_SUCCESS;
}

CUresult mem_free(CUdeviceptr address) {
  if (address == 0) return CUDA_SUCCESS;
  state& s = here();
  std::lock_guard lock(s.mutex);
  const auto at = s.allocations.find(address);
  if (at == s.allocations.end()) return CUDA_ERROR_INVALID_VALUE;
  s.used_memory -= at->second;
  s.allocations.erase(at);
  return std::free(pointer(address)), CUDA_SUCCESS;
}

CUresult mem_alloc_async(CUdeviceptr* address, std::size_t bytes, CUstream) {
  return mem_alloc(address, bytes);
}
CUresult mem_free_async(CUdeviceptr address, CUstream) { return mem_free(address); }

CUresult mem_get_info(std::size_t* free_bytes, std::size_t* total) {
  state& s = here();
  std::lock_guard lock(s.mutex);
  if (free_bytes != nullptr) *free_bytes = s.total_memory - s.used_memory;
  if (total != nullptr) *total = s.total_memory;
  return CUDA_SUCCESS;
}

CUresult mem_get_address_range(CUdeviceptr* base, std::size_t* size, CUdeviceptr address) {
  state& s = here();
  std::lock_guard lock(s.mutex);
  auto at = s.allocations.upper_bound(address);
  if (at == s.allocations.begin() || address - (--at)->first >= at->second) return CUDA_ERROR_NOT_FOUND;
  if (base != nullptr) *base = at->first;
  if (size != nullptr) *size = at->second;
  return CUDA_SUCCESS;
}

CUresult host_alloc(void** block, std::size_t bytes, unsigned) {
  state& s = here();
  std::lock_guard lock(s.mutex);
  const std::uint64_t address = allocate(bytes);
  if (address == 0) return CUDA_ERROR_OUT_OF_MEMORY;
  s.host_blocks[address] = bytes;
  return *block = pointer(address), CUDA_SUCCESS;
}

CUresult host_alloc_plain(void** block, std::size_t bytes) { return host_alloc(block, bytes, 0); }

CUresult host_free(void* block) {
  state& s = here();
  std::lock_guard lock(s.mutex);
  if (s.host_blocks.erase(reinterpret_cast<std::uint64_t>(block)) == 0) return CUDA_ERROR_INVALID_VALUE;
  return std::free(block), CUDA_SUCCESS;
}

CUresult host_register(void* block, std::size_t bytes, unsigned) {
  state& s = here();
  std::lock_guard lock(s.mutex);
  s.registered[reinterpret_cast<std::uint64_t>(block)] = bytes;
  return CUDA_SUCCESS;
}

CUresult host_unregister(void* block) {
  state& s = here();
  std::lock_guard lock(s.mutex);
  return s.registered.erase(reinterpret_cast<std::uint64_t>(block)) != 0
             ? CUDA_SUCCESS
             : CUDA_ERROR_HOST_MEMORY_NOT_REGISTERED;
}

CUresult write_value(CUstream, CUdeviceptr address, cuuint32_t value, unsigned) {
  if (!is_given(address, sizeof value)) return CUDA_ERROR_INVALID_VALUE;
  std::atomic_ref<cuuint32_t>(*static_cast<cuuint32_t*>(pointer(address)))
      .store(value, std::memory_order_release);
  return CUDA_SUCCESS;
}

CUresult host_get_device_pointer(CUdeviceptr* address, void* block, unsigned) {
  return *address = reinterpret_cast<CUdeviceptr>(block), CUDA_SUCCESS;
}

CUresult copy(CUdeviceptr to, CUdeviceptr from, std::size_t bytes) {
  if (bytes == 0) return CUDA_SUCCESS;
  if (!is_given(to, bytes) || !is_given(from, bytes)) return CUDA_ERROR_INVALID_VALUE;
  return std::memmove(pointer(to), pointer(from), bytes), CUDA_SUCCESS;
}

CUresult copy_async(CUdeviceptr to, CUdeviceptr from, std::size_t bytes, CUstream) {
  return copy(to, from, bytes);
}
CUresult copy_in(CUdeviceptr to, const void* from, std::size_t bytes) {
  if (bytes == 0) return CUDA_SUCCESS;
  if (!is_given(to, bytes)) return CUDA_ERROR_INVALID_VALUE;
  return std::memmove(pointer(to), from, bytes), CUDA_SUCCESS;
}
CUresult copy_in_async(CUdeviceptr to, const void* from, std::size_t bytes, CUstream) {
  return copy_in(to, from, bytes);
}
CUresult copy_out(void* to, CUdeviceptr from, std::size_t bytes) {
  if (bytes == 0) return CUDA_SUCCESS;
  if (!is_given(from, bytes)) return CUDA_ERROR_INVALID_VALUE;
  return std::memmove(to, pointer(from), bytes), CUDA_SUCCESS;
}
CUresult copy_out_async(void* to, CUdeviceptr from, std::size_t bytes, CUstream) {
  return copy_out(to, from, bytes);
}

template <class T>
CUresult set_2d(CUdeviceptr to, std::size_t pitch, T value, std::size_t width, std::size_t height) {
  if (width == 0 || height == 0) return CUDA_SUCCESS;
  std::size_t row = 0;
  if (__builtin_mul_overflow(width, sizeof(T), &row) || (height > 1 && pitch < row))
    return CUDA_ERROR_INVALID_VALUE;
  for (std::size_t y = 0; y < height; ++y) {
    if (!is_given(to + y * pitch, row)) return CUDA_ERROR_INVALID_VALUE;
    for (std::size_t x = 0; x < width; ++x)
      std::memcpy(pointer(to + y * pitch + x * sizeof(T)), &value, sizeof(T));
  }
  return CUDA_SUCCESS;
}
template <class T>
CUresult set_2d_async(CUdeviceptr to, std::size_t pitch, T value, std::size_t width, std::size_t height,
                      CUstream) {
  return set_2d(to, pitch, value, width, height);
}
template <class T>
CUresult set(CUdeviceptr to, T value, std::size_t count) {
  return set_2d(to, 0, value, count, 1);
}
template <class T>
CUresult set_async(CUdeviceptr to, T value, std::size_t count, CUstream) {
  return set(to, value, count);
}

/// Gives a variable of any module its own memory; the same name always gets the same memory.
CUresult global_of(std::uint64_t owner, CUdeviceptr* address, std::size_t* bytes, const char* name) {
  state& s = here();
  std::lock_guard lock(s.mutex);
  std::uint64_t& block = s.globals[{owner, name}];
  if (block == 0) block = allocate(global_size);
  if (address != nullptr) *address = block;
  if (bytes != nullptr) *bytes = global_size;
  return CUDA_SUCCESS;
}

CUresult module_get_global(CUdeviceptr* address, std::size_t* bytes, CUmodule module, const char* name) {
  return global_of(reinterpret_cast<std::uint64_t>(module), address, bytes, name);
}
CUresult library_get_global(CUdeviceptr* address, std::size_t* bytes, CUlibrary library, const char* name) {
  return global_of(reinterpret_cast<std::uint64_t>(library), address, bytes, name);
}

}  // namespace

void set_memory_behaviours(api::driver_table& b) {
  b.cuMemAlloc_v2 = mem_alloc;
  b.cuMemAllocPitch_v2 = mem_alloc_pitch;
  b.cuMemFree_v2 = mem_free;
  b.cuMemAllocManaged = mem_alloc_managed;
  b.cuMemAllocAsync = b.cuMemAllocAsync_ptsz = mem_alloc_async;
  b.cuMemFreeAsync = b.cuMemFreeAsync_ptsz = mem_free_async;
  b.cuMemGetInfo_v2 = mem_get_info;
  b.cuMemGetAddressRange_v2 = mem_get_address_range;
  b.cuMemHostAlloc = host_alloc;
  b.cuMemAllocHost_v2 = host_alloc_plain;
  b.cuMemFreeHost = host_free;
  b.cuMemHostRegister_v2 = host_register;
  b.cuMemHostUnregister = host_unregister;
  b.cuStreamWriteValue32_v2 = b.cuStreamWriteValue32_v2_ptsz = write_value;
  b.cuMemHostGetDevicePointer_v2 = host_get_device_pointer;
  b.cuMemcpy = b.cuMemcpy_ptds = copy;
  b.cuMemcpyAsync = b.cuMemcpyAsync_ptsz = copy_async;
  b.cuMemcpyHtoD_v2 = b.cuMemcpyHtoD_v2_ptds = copy_in;
  b.cuMemcpyHtoDAsync_v2 = b.cuMemcpyHtoDAsync_v2_ptsz = copy_in_async;
  b.cuMemcpyDtoH_v2 = b.cuMemcpyDtoH_v2_ptds = copy_out;
  b.cuMemcpyDtoHAsync_v2 = b.cuMemcpyDtoHAsync_v2_ptsz = copy_out_async;
  b.cuMemcpyDtoD_v2 = b.cuMemcpyDtoD_v2_ptds = copy;
  b.cuMemcpyDtoDAsync_v2 = b.cuMemcpyDtoDAsync_v2_ptsz = copy_async;
  b.cuMemsetD8_v2 = b.cuMemsetD8_v2_ptds = set<unsigned char>;
  b.cuMemsetD16_v2 = b.cuMemsetD16_v2_ptds = set<unsigned short>;
  b.cuMemsetD32_v2 = b.cuMemsetD32_v2_ptds = set<unsigned>;
  b.cuMemsetD8Async = b.cuMemsetD8Async_ptsz = set_async<unsigned char>;
  b.cuMemsetD16Async = b.cuMemsetD16Async_ptsz = set_async<unsigned short>;
  b.cuMemsetD32Async = b.cuMemsetD32Async_ptsz = set_async<unsigned>;
  b.cuMemsetD2D8_v2 = b.cuMemsetD2D8_v2_ptds = set_2d<unsigned char>;
  b.cuMemsetD2D16_v2 = b.cuMemsetD2D16_v2_ptds = set_2d<unsigned short>;
  b.cuMemsetD2D32_v2 = b.cuMemsetD2D32_v2_ptds = set_2d<unsigned>;
  b.cuMemsetD2D8Async = b.cuMemsetD2D8Async_ptsz = set_2d_async<unsigned char>;
  b.cuMemsetD2D16Async = b.cuMemsetD2D16Async_ptsz = set_2d_async<unsigned short>;
  b.cuMemsetD2D32Async = b.cuMemsetD2D32Async_ptsz = set_2d_async<unsigned>;
  b.cuModuleGetGlobal_v2 = module_get_global;
  b.cuLibraryGetGlobal = library_get_global;
  b.cuLibraryGetManaged = library_get_global;
}

}  // namespace outboard::device::mock
