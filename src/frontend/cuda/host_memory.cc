// Chapter memory, host side: page-locked memory of the program. It lives in this process alone; copies from
// and to it move bytes, which is why they can be asynchronous in both directions.
#include <sys/mman.h>
#include <unistd.h>

#include "frontend/cuda/contexts.hh"
#include "frontend/cuda/ends.hh"

namespace outboard::frontend::cuda {
namespace {

constexpr unsigned alloc_flags =
    CU_MEMHOSTALLOC_PORTABLE | CU_MEMHOSTALLOC_DEVICEMAP | CU_MEMHOSTALLOC_WRITECOMBINED;
constexpr unsigned register_flags = CU_MEMHOSTREGISTER_PORTABLE | CU_MEMHOSTREGISTER_DEVICEMAP;

std::uint64_t pages(std::uint64_t size) {
  const auto page = static_cast<std::uint64_t>(::sysconf(_SC_PAGESIZE));
  return (size + page - 1) / page * page;
}

CUresult allocate(void** pp, size_t bytesize, unsigned flags) {
  process& p = process::instance();
  lane& own = this_lane();
  if (const CUresult code = p.gate(own); code != CUDA_SUCCESS) return code;
  if (!pp || bytesize == 0 || (flags & ~alloc_flags)) return CUDA_ERROR_INVALID_VALUE;
  if (bytesize > 1ull << 46) return CUDA_ERROR_OUT_OF_MEMORY;
  void* memory = ::mmap(nullptr, pages(bytesize), PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (memory == MAP_FAILED) return CUDA_ERROR_OUT_OF_MEMORY;
  memory_block block;
  block.base = reinterpret_cast<std::uint64_t>(memory);
  block.size = bytesize;
  block.mapped = pages(bytesize);
  block.kind = memory_kind::pinned;
  block.context = own.context_handle();
  block.device = own.current()->device;
  block.flags = flags;
  p.addresses().insert(block);
  *pp = memory;
  return CUDA_SUCCESS;
}

/// Copies under way use the memory until the device is done with them; the driver waits as well.
CUresult wait_for_copies(lane& own) {
  if (!process::instance().server()->copies_pending()) return CUDA_SUCCESS;
  return request(api::opcode::cuCtxSynchronize, own).call();
}

CUresult find_host(void* pointer, memory_kind kind, memory_block& out) {
  process& p = process::instance();
  if (const CUresult code = p.gate(this_lane(), false); code != CUDA_SUCCESS) return code;
  const auto block = p.addresses().find(reinterpret_cast<std::uint64_t>(pointer));
  if (!block || block->kind != kind || block->base != reinterpret_cast<std::uint64_t>(pointer)) {
    return kind == memory_kind::registered ? CUDA_ERROR_HOST_MEMORY_NOT_REGISTERED : CUDA_ERROR_INVALID_VALUE;
  }
  out = *block;
  return CUDA_SUCCESS;
}

}  // namespace

CUresult ends::cuMemHostAlloc(void** pp, size_t bytesize, unsigned Flags) {
  return allocate(pp, bytesize, Flags);
}
CUresult ends::cuMemAllocHost_v2(void** pp, size_t bytesize) { return allocate(pp, bytesize, 0); }

CUresult ends::cuMemAllocHost(void** pp, unsigned bytesize) { return allocate(pp, bytesize, 0); }

CUresult ends::cuMemFreeHost(void* p) {
  memory_block block;
  if (const CUresult code = find_host(p, memory_kind::pinned, block); code != CUDA_SUCCESS) return code;
  if (const CUresult code = wait_for_copies(this_lane()); code != CUDA_SUCCESS) return code;
  if (process::instance().addresses().remove(block.base)) ::munmap(p, block.mapped);
  return CUDA_SUCCESS;
}

CUresult ends::cuMemHostGetFlags(unsigned* pFlags, void* p) {
  process& state = process::instance();
  if (const CUresult code = state.gate(this_lane()); code != CUDA_SUCCESS) return code;
  const auto block = state.addresses().find(reinterpret_cast<std::uint64_t>(p));
  if (!pFlags || !block || !is_host(block->kind)) return CUDA_ERROR_INVALID_VALUE;
  *pFlags = block->flags;
  return CUDA_SUCCESS;
}

/// The program's own memory stays its own: its copies are staged like pageable ones, but asynchronous.
CUresult ends::cuMemHostRegister_v2(void* p, size_t bytesize, unsigned Flags) {
  process& state = process::instance();
  lane& own = this_lane();
  if (const CUresult code = state.gate(own); code != CUDA_SUCCESS) return code;
  if (!p || bytesize == 0 || (Flags & ~(register_flags | CU_MEMHOSTREGISTER_READ_ONLY))) {
    return CUDA_ERROR_INVALID_VALUE;
  }
  if (Flags & CU_MEMHOSTREGISTER_READ_ONLY) return CUDA_ERROR_NOT_SUPPORTED;  // attribute 113 says so
  memory_block block;
  block.base = reinterpret_cast<std::uint64_t>(p);
  block.size = bytesize;
  block.kind = memory_kind::registered;
  block.context = own.context_handle();
  block.device = own.current()->device;
  block.flags = Flags;
  if (state.addresses().find(block.base) || state.addresses().find(block.base + bytesize - 1)) {
    return CUDA_ERROR_HOST_MEMORY_ALREADY_REGISTERED;
  }
  state.addresses().insert(block);
  return CUDA_SUCCESS;
}

CUresult ends::cuMemHostRegister(void* p, size_t bytesize, unsigned Flags) {
  return ends::cuMemHostRegister_v2(p, bytesize, Flags);
}

CUresult ends::cuMemHostUnregister(void* p) {
  memory_block block;
  if (const CUresult code = find_host(p, memory_kind::registered, block); code != CUDA_SUCCESS) return code;
  if (const CUresult code = wait_for_copies(this_lane()); code != CUDA_SUCCESS) return code;
  process::instance().addresses().remove(block.base);
  return CUDA_SUCCESS;
}

}  // namespace outboard::frontend::cuda
