// The host side of memory: page-locked blocks and registered memory of the program, which kernels may touch
// too.
#include <sys/mman.h>

#include "device/cpu/memory/memory.hh"

namespace outboard::device::cpu {
namespace {

constexpr std::uint64_t page = 4096;
void* pointer(std::uint64_t address) { return reinterpret_cast<void*>(address); }
std::uint64_t whole_pages(std::uint64_t size) { return (size + page - 1) / page * page; }

}  // namespace

bool memory::free_in_regions(std::uint64_t address, std::uint64_t size) const {
  const auto next = regions_.lower_bound(address);
  return at(address) == regions_.end() && (next == regions_.end() || next->first >= address + size);
}

CUresult memory::host_allocate(std::uint64_t size, std::uint64_t owner, unsigned flags, std::uint64_t& out) {
  if (size > std::uint64_t{1} << 46) return CUDA_ERROR_OUT_OF_MEMORY;
  void* block =
      ::mmap(nullptr, whole_pages(size), PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (block == MAP_FAILED) return CUDA_ERROR_OUT_OF_MEMORY;
  out = reinterpret_cast<std::uint64_t>(block);
  std::lock_guard lock(mutex_);
  regions_[out] = {.begin = out,
                   .size = size,
                   .kind = memory_kind::host,
                   .owner = owner,
                   .id = ++last_id_,
                   .flags = flags};
  return CUDA_SUCCESS;
}

CUresult memory::forget_host(std::uint64_t address, memory_kind kind, CUresult unknown, std::uint64_t& size) {
  wait_for_flights();
  {
    std::lock_guard lock(mutex_);
    const auto block = regions_.find(address);
    if (block == regions_.end() || block->second.kind != kind) return unknown;
    size = block->second.size;
    regions_.erase(block);
  }
  wait_for_flights();
  return CUDA_SUCCESS;
}

CUresult memory::host_release(std::uint64_t address) {
  std::uint64_t size = 0;
  const CUresult code = forget_host(address, memory_kind::host, CUDA_ERROR_INVALID_VALUE, size);
  if (code == CUDA_SUCCESS) ::munmap(pointer(address), whole_pages(size));
  return code;
}

CUresult memory::host_register(std::uint64_t address, std::uint64_t size, std::uint64_t owner,
                               unsigned flags) {
  if (address == 0 || size == 0 || size > ~address) return CUDA_ERROR_INVALID_VALUE;
  std::lock_guard lock(mutex_);
  if (!free_in_regions(address, size)) return CUDA_ERROR_HOST_MEMORY_ALREADY_REGISTERED;
  regions_[address] = {.begin = address,
                       .size = size,
                       .kind = memory_kind::registered,
                       .owner = owner,
                       .id = ++last_id_,
                       .flags = flags,
                       .writable = (flags & CU_MEMHOSTREGISTER_READ_ONLY) == 0};
  return CUDA_SUCCESS;
}

CUresult memory::host_unregister(std::uint64_t address) {
  std::uint64_t size = 0;
  return forget_host(address, memory_kind::registered, CUDA_ERROR_HOST_MEMORY_NOT_REGISTERED, size);
}

}  // namespace outboard::device::cpu
