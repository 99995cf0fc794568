// Chapter memory, host side: page-locked memory of the program. It lives in this process; copies from and to
// it move bytes, which is why they can be asynchronous in both directions. Kernels see it once they can know
// its address (coherence.hh).
#include <sys/mman.h>

#include <cerrno>

#include "base/fd.hh"
#include "base/pages.hh"
#include "frontend/cuda/contexts.hh"
#include "frontend/cuda/copying/coherence.hh"
#include "frontend/cuda/copying/host_order.hh"
#include "frontend/cuda/ends.hh"
#include "frontend/cuda/idle.hh"
#include "frontend/cuda/own_context.hh"

namespace outboard::frontend::cuda {
namespace {

constexpr unsigned alloc_flags =
    CU_MEMHOSTALLOC_PORTABLE | CU_MEMHOSTALLOC_DEVICEMAP | CU_MEMHOSTALLOC_WRITECOMBINED;
constexpr unsigned register_flags = CU_MEMHOSTREGISTER_PORTABLE | CU_MEMHOSTREGISTER_DEVICEMAP;

void* pointer(std::uint64_t address) { return reinterpret_cast<void*>(address); }

/// Ordinary pages over the arena's claim. A child of fork() has none of them, as with the driver's.
CUresult back_with_pages(pinned_chunk& chunk) {
  void* got = ::mmap(pointer(chunk.base), chunk.size, PROT_READ | PROT_WRITE,
                     MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0);
  if (got == MAP_FAILED) return CUDA_ERROR_OUT_OF_MEMORY;
  ::madvise(got, chunk.size, MADV_DONTFORK);
  return CUDA_SUCCESS;
}

/// Whether this process has memory there: pages without would be found by nobody before a copy faults.
bool is_mapped(std::uint64_t address, std::uint64_t size) {
  const std::uint64_t begin = page_down(address), end = page_up(address + size);
  return ::msync(pointer(begin), end - begin, MS_ASYNC) == 0 || errno != ENOMEM;
}

/// The same pages as the server's, which made them, sealed their size and page-locked them: then copies are
/// the device's own, and each side sees at once what the other writes.
CUresult share_with_server(lane& own, pinned_chunk& chunk, unique_fd* file = nullptr) {
  unique_fd memory;
  std::vector<std::byte> reply;
  const CUresult code = call_apart<api::opcode::cuMemHostAlloc>(
      own, own.context_handle(), marshal::host_share_body{chunk.base, chunk.size}, reply, &memory);
  if (code != CUDA_SUCCESS) return code;
  if (!memory || !map_shared(chunk.base, chunk.size, memory.get(), 0)) return CUDA_ERROR_OPERATING_SYSTEM;
  chunk.shared = true;
  chunk.context = own.context_handle();
  if (file) *file = std::move(memory);
  return CUDA_SUCCESS;
}

CUresult back(lane& own, pinned_chunk& chunk) {
  if (!process::instance().server()->passes_descriptors()) return back_with_pages(chunk);
  const CUresult code = share_with_server(own, chunk);
  if (code == CUDA_SUCCESS || code == CUDA_ERROR_OUT_OF_MEMORY) return code;
  return back_with_pages(chunk);  // the server cannot share, or not at this address
}

void drop_pages(lane& own, const pinned_chunk& chunk) {
  if (chunk.shared) {
    unshare(own, chunk.base);
  } else {
    hide_block(own, chunk.base);
  }
  ::mmap(pointer(chunk.base), chunk.size, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED,
         -1, 0);
}

/// False: another thread has given it back.
bool give_back(lane& own, const memory_block& block) {
  process& p = process::instance();
  if (!p.memory().addresses().remove(block.base)) return false;
  p.memory().arena().release(block.base, block.size,
                             [&](const pinned_chunk& chunk) { drop_pages(own, chunk); });
  return true;
}

CUresult allocate(void** pp, size_t bytesize, unsigned flags) {
  process& p = process::instance();
  lane& own = this_lane();
  if (const CUresult code = p.gate(own); code != CUDA_SUCCESS) return code;
  if (!pp || (flags & ~alloc_flags)) return CUDA_ERROR_INVALID_VALUE;
  if (bytesize == 0) return *pp = nullptr, CUDA_SUCCESS;
  if (bytesize > 1ull << 46) return CUDA_ERROR_OUT_OF_MEMORY;
  memory_block block;
  const CUresult backed = p.memory().arena().allocate(
      bytesize, [&](pinned_chunk& chunk) { return back(own, chunk); }, block.base);
  if (backed != CUDA_SUCCESS) return backed;
  p.memory().use_host_memory();
  if (flags & CU_MEMHOSTALLOC_DEVICEMAP) p.memory().map_host_memory();
  block.size = bytesize;
  block.kind = memory_kind::pinned;
  block.context = own.context_handle();
  block.device = own.current()->device;
  block.flags = flags;
  p.memory().addresses().insert(block);
  const CUresult shown = p.memory().find_addresses() ? CUDA_SUCCESS : show_pinned(own, block.base);
  if (shown != CUDA_SUCCESS) return give_back(own, block), shown;
  *pp = pointer(block.base);
  return CUDA_SUCCESS;
}

/// As cuMemFree waits: beside a capture that lets this thread free, for the streams that are not captured.
CUresult wait_for_context(lane& own, std::uint64_t context) {
  if (!any_capture_open()) return request_of<api::opcode::cuCtxSynchronize>(own).in_context(context).call();
  request_of<api::opcode::cuMemFree_v2> r(own, marshal::unmap_body{0, 0});
  return r.in_context(context).call();
}

/// Copies and kernels under way use the memory until the device is done with them, kernels if they can have
/// seen it. The driver waits as well; here its place may be somebody's at once.
CUresult wait_for_users(lane& own, const memory_block& block) {
  process& p = process::instance();
  const auto chunk = p.memory().arena().chunk_of(block.base);
  const bool seen = chunk && (chunk->shared || p.memory().mirrors().find(chunk->base));
  const bool copied = p.server()->copies_pending();
  if (!seen && !copied) return CUDA_SUCCESS;
  const bool here = own.current() && own.current()->handle == block.context;
  const idle_question idle = idle_question::of_context(own);
  if (here && !copied && idle.known_idle()) return CUDA_SUCCESS;
  const CUresult code = wait_for_context(own, block.context);
  if (here && code == CUDA_SUCCESS && !any_capture_open()) idle.now_idle();
  return code;
}

CUresult find_host(void* pointer, memory_kind kind, memory_block& out) {
  process& p = process::instance();
  if (const CUresult code = p.gate(this_lane(), false); code != CUDA_SUCCESS) return code;
  if (const CUresult code = state_of_current(); code != CUDA_SUCCESS) return code;
  const auto block = p.memory().addresses().find(reinterpret_cast<std::uint64_t>(pointer));
  if (!block || block->kind != kind || block->base != reinterpret_cast<std::uint64_t>(pointer)) {
    const bool unknown = pointer && !block;
    return unknown && kind == memory_kind::registered ? CUDA_ERROR_HOST_MEMORY_NOT_REGISTERED
                                                      : CUDA_ERROR_INVALID_VALUE;
  }
  const context_state* owner = p.objects().find_context(block->context);
  if (owner && !owner->primary && !owner->active.load()) return CUDA_ERROR_INVALID_VALUE;  // it went with it
  out = *block;
  return CUDA_SUCCESS;
}

/// The program's own memory gets a block on the server at its first question for the device's pointer. Where
/// the addresses differ, the device's is taken out of the program's reach.
CUresult show_registered(lane& own, const memory_block& block, std::uint64_t& device_address,
                         bool to_kernels) {
  process& p = process::instance();
  // Bytes of a copy that was asked for before the server had the block land here alone.
  const auto* const first = reinterpret_cast<const std::byte*>(block.base);
  if (const CUresult code = settle(own, first, block.size); code != CUDA_SUCCESS) return code;
  const std::lock_guard lock(p.memory().showing());
  if (const auto known = p.memory().mirrors().find(block.base)) {
    if (to_kernels && !known->kernels) p.memory().mirrors().show_to_kernels(block.base);
    device_address = known->device_address;
    return CUDA_SUCCESS;
  }
  const CUresult code = show_block(own, block.base, block.size, marshal::host_block::registered,
                                   device_address, nullptr, to_kernels);
  if (code != CUDA_SUCCESS || device_address == block.base) return code;
  memory_block alias = block;
  alias.base = device_address;
  alias.kind = memory_kind::alias;
  alias.host = block.base;
  const CUresult claimed = p.memory().insert_foreign(alias);
  if (claimed != CUDA_SUCCESS) hide_block(own, block.base);
  return claimed;
}

/// What kernels have written comes back first; then no kernel sees it any more.
CUresult hide_registered(lane& own, const memory_block& block) {
  process& p = process::instance();
  const auto shown = p.memory().mirrors().find(block.base);
  if (!shown) return CUDA_SUCCESS;
  const CUresult code = request_of<api::opcode::cuCtxSynchronize>(own).call();
  if (shown->device_address != block.base) p.memory().addresses().remove(shown->device_address);
  hide_block(own, block.base);
  return code;
}

}  // namespace

CUresult allocate_shared(lane& own, std::uint64_t size, std::uint64_t& address, unique_fd* file) {
  return process::instance().memory().arena().allocate(
      size, [&](pinned_chunk& chunk) { return share_with_server(own, chunk, file); }, address);
}

void release_shared(lane& own, std::uint64_t address, std::uint64_t size) {
  process::instance().memory().arena().release(address, size,
                                               [&](const pinned_chunk& chunk) { drop_pages(own, chunk); });
}

bool is_shared_still(const lane& own, std::uint64_t address) {
  const auto chunk = process::instance().memory().arena().chunk_of(address);
  return chunk && chunk->shared && chunk->context == own.context_handle();
}

bool may_pass_shared() {
  process& p = process::instance();
  return p.server()->passes_descriptors() && !p.synchronous() && !p.memory().arena().has_private() &&
         !p.memory().mirrors().any() && !any_capture_open();
}

void forget_page_locked(lane& own, std::uint64_t context) {
  process& p = process::instance();
  for (const memory_block& block : p.memory().addresses().remove_if(
           [&](const memory_block& b) { return b.context == context && is_host(b.kind); })) {
    if (block.kind == memory_kind::pinned)
      p.memory().arena().release(block.base, block.size,
                                 [&](const pinned_chunk& chunk) { drop_pages(own, chunk); });
  }
}

CUresult device_pointer_of(lane& own, const memory_block& block, std::uint64_t address, std::uint64_t& out,
                           bool to_kernels) {
  if (block.kind == memory_kind::pinned) return out = address, show_pinned(own, address, to_kernels);
  std::uint64_t begin = 0;
  const CUresult code = show_registered(own, block, begin, to_kernels);
  if (code == CUDA_SUCCESS) out = begin + (address - block.base);
  return code;
}

CUresult ends::cuMemHostAlloc(void** pp, size_t bytesize, unsigned Flags) {
  return allocate(pp, bytesize, Flags);
}
CUresult ends::cuMemAllocHost_v2(void** pp, size_t bytesize) { return allocate(pp, bytesize, 0); }

CUresult ends::cuMemAllocHost(void** pp, unsigned bytesize) { return allocate(pp, bytesize, 0); }

CUresult ends::cuMemFreeHost(void* p) {
  if (!p) return process::instance().gate(this_lane(), false);
  memory_block block;
  if (const CUresult code = find_host(p, memory_kind::pinned, block); code != CUDA_SUCCESS) return code;
  lane& own = this_lane();
  if (const CUresult code = wait_for_users(own, block); code != CUDA_SUCCESS) return code;
  return give_back(own, block) ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

CUresult ends::cuMemHostGetDevicePointer_v2(CUdeviceptr* pdptr, void* p, unsigned Flags) {
  process& state = process::instance();
  lane& own = this_lane();
  if (const CUresult code = state.gate(own); code != CUDA_SUCCESS) return code;
  const auto address = reinterpret_cast<std::uint64_t>(p);
  const auto block = state.memory().addresses().find(address);
  if (pdptr && Flags == 0 && block && block->kind == memory_kind::host_range)
    return *pdptr = block->base, CUDA_SUCCESS;  // whatever lies between, as a driver says (580)
  if (!pdptr || Flags != 0 || !block || !is_host(block->kind)) return CUDA_ERROR_INVALID_VALUE;
  state.memory().map_host_memory();
  std::uint64_t found = 0;
  const CUresult code = device_pointer_of(own, *block, address, found);
  if (code == CUDA_SUCCESS) *pdptr = found;
  return code;
}

CUresult ends::cuMemHostGetFlags(unsigned* pFlags, void* p) {
  process& state = process::instance();
  if (const CUresult code = state.gate(this_lane()); code != CUDA_SUCCESS) return code;
  const auto block = state.memory().addresses().find(reinterpret_cast<std::uint64_t>(p));
  if (!pFlags || !block || !lies_on_host(block->kind)) return CUDA_ERROR_INVALID_VALUE;
  *pFlags = block->kind == memory_kind::host_range ? CU_MEMHOSTALLOC_PORTABLE | CU_MEMHOSTALLOC_DEVICEMAP
                                                   : block->flags;
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
  if (bytesize > ~block.base) return CUDA_ERROR_INVALID_VALUE;
  const auto first = state.memory().addresses().find(block.base);
  const auto last = state.memory().addresses().find(block.base + bytesize - 1);
  if (first || last) {
    const bool registered = (first ? first : last)->kind == memory_kind::registered;
    return registered ? CUDA_ERROR_HOST_MEMORY_ALREADY_REGISTERED : CUDA_ERROR_INVALID_VALUE;
  }
  if (!is_mapped(block.base, bytesize)) return CUDA_ERROR_INVALID_VALUE;
  state.memory().use_host_memory();
  state.memory().addresses().insert(block);
  return CUDA_SUCCESS;
}

CUresult ends::cuMemHostRegister(void* p, size_t bytesize, unsigned Flags) {
  return ends::cuMemHostRegister_v2(p, bytesize, Flags);
}

CUresult ends::cuMemHostUnregister(void* p) {
  memory_block block;
  if (const CUresult code = find_host(p, memory_kind::registered, block); code != CUDA_SUCCESS) return code;
  lane& own = this_lane();
  if (process::instance().server()->copies_pending()) {
    if (const CUresult code = wait_for_context(own, block.context); code != CUDA_SUCCESS) return code;
  }
  const CUresult code = hide_registered(own, block);
  process::instance().memory().addresses().remove(block.base);
  return code;
}

}  // namespace outboard::frontend::cuda
