// Chapter memory, device side: addresses are handed out here from the window, the server maps memory behind
// them. Where faults shall dump, blocks lie where the driver likes: it dumps no memory that is mapped.
#include "frontend/cuda/contexts.hh"
#include "frontend/cuda/ends.hh"
#include "frontend/cuda/own_context.hh"

namespace outboard::frontend::cuda {
namespace {

std::uint64_t round_up(std::uint64_t value, std::uint64_t to) { return (value + to - 1) / to * to; }

/// Waits for the device; size 0 unmaps nothing.
CUresult unmap(lane& own, const context_state& context, std::uint64_t address, std::uint64_t size) {
  request_of<api::opcode::cuMemFree_v2> r(own, marshal::unmap_body{address, size});
  r.in_context(context.handle);
  const CUresult code = r.call();
  if (slot_addresses* slot = process::instance().memory().window_slot_at(address); slot && size) {
    slot->give_back(address, size);
  }
  return code;
}

/// Memory of whole granules at a fresh address of the window, or (no slot) where the device likes.
/// CUDA_ERROR_MAP_FAILED: this process has something of its own there.
CUresult map(lane& own, slot_addresses* slot, std::uint64_t size, std::uint64_t& address) {
  address = slot ? slot->take(size) : 0;
  if (slot && !address) return CUDA_ERROR_OUT_OF_MEMORY;
  request_of<api::opcode::cuMemAlloc_v2> r(own, marshal::map_body{address, size});
  marshal::address_reply got;
  const CUresult code = r.call(got);
  if (code != CUDA_SUCCESS) {
    if (slot) slot->give_back(address, size);
    return code;
  }
  address = got.address;
  process& p = process::instance();
  if (slot || !p.memory().window_left() || p.memory().claim_foreign(address, size)) return CUDA_SUCCESS;
  (void)unmap(own, *own.current(), address, size);
  return CUDA_ERROR_MAP_FAILED;
}

CUresult allocate_small(lane& own, slot_addresses* slot, std::uint64_t size, std::uint64_t& address) {
  slab_allocator& small = own.owner()->small;
  while ((address = small.take(size)) == 0) {
    std::uint64_t granule = 0;
    if (const CUresult code = map(own, slot, window_granule, granule); code != CUDA_SUCCESS) return code;
    small.add_granule(granule, window_granule);
  }
  return CUDA_SUCCESS;
}

/// `slot`: where the block lies; nullptr: where the device likes.
CUresult place(lane& own, slot_addresses* slot, bool in_granules, memory_block& block) {
  block.mapped = 0;
  if (in_granules && block.size <= small_limit) return allocate_small(own, slot, block.size, block.base);
  // Anything near 2^64 would wrap; no device has a petabyte.
  if (block.size > 1ull << 50) return CUDA_ERROR_OUT_OF_MEMORY;
  block.mapped = in_granules ? round_up(block.size, window_granule) : block.size;
  return map(own, slot, block.mapped, block.base);
}

CUresult allocate(lane& own, std::uint64_t size, CUdeviceptr* out) {
  process& p = process::instance();
  memory_block block;
  block.size = size;
  block.context = own.context_handle();
  block.device = own.current()->device;
  slot_addresses* const window = p.memory().window_slot(block.device);
  CUresult code = CUDA_ERROR_MAP_FAILED;
  if (!window || p.memory().window_left()) code = place(own, nullptr, window != nullptr, block);
  if (window && code == CUDA_ERROR_MAP_FAILED) code = place(own, window, true, block);
  if (code != CUDA_SUCCESS) return code;
  p.memory().addresses().insert(block);
  *out = block.base;
  return CUDA_SUCCESS;
}

/// What a graph's launch has allocated and no node frees is the program's to free. Only the server knows
/// these addresses; of others it says so. Their user may be any stream: all are waited for, as cuMemFree
/// does.
CUresult free_graph_memory(lane& own, std::uint64_t address) {
  if (!own.current()) return CUDA_ERROR_INVALID_VALUE;
  request_of<api::opcode::cuCtxSynchronize> wait(own);
  if (const CUresult code = wait.call(); code != CUDA_SUCCESS) return code;
  request_of<api::opcode::cuMemFreeAsync> r(own, marshal::pool_body{0, address, 0, 0, false});
  return r.call();
}

}  // namespace

CUresult ends::cuMemAlloc_v2(CUdeviceptr* dptr, size_t bytesize) {
  lane& own = this_lane();
  if (const CUresult code = process::instance().gate(own); code != CUDA_SUCCESS) return code;
  if (!dptr || bytesize == 0) return CUDA_ERROR_INVALID_VALUE;
  return allocate(own, bytesize, dptr);
}

CUresult ends::cuMemAllocPitch_v2(CUdeviceptr* dptr, size_t* pPitch, size_t WidthInBytes, size_t Height,
                                  unsigned ElementSizeBytes) {
  lane& own = this_lane();
  if (const CUresult code = process::instance().gate(own); code != CUDA_SUCCESS) return code;
  const bool element_ok = ElementSizeBytes == 4 || ElementSizeBytes == 8 || ElementSizeBytes == 16;
  if (!dptr || !pPitch || !WidthInBytes || !Height || !element_ok) return CUDA_ERROR_INVALID_VALUE;
  const std::uint64_t pitch = round_up(WidthInBytes, 512);  // what drivers of every current GPU give
  if (pitch < WidthInBytes || pitch > ~std::uint64_t{0} / Height) return CUDA_ERROR_INVALID_VALUE;
  const CUresult code = allocate(own, pitch * Height, dptr);
  if (code == CUDA_SUCCESS) *pPitch = pitch;
  return code;
}

CUresult ends::cuMemFree_v2(CUdeviceptr dptr) {
  process& p = process::instance();
  lane& own = this_lane();
  if (const CUresult code = p.gate(own, false); code != CUDA_SUCCESS) return code;
  if (const CUresult code = state_of_current(); code != CUDA_SUCCESS) return code;
  if (dptr == 0 || free_external_mapping(dptr)) return CUDA_SUCCESS;
  const auto known = p.memory().addresses().find(dptr);
  if (!known) return free_graph_memory(own, dptr);
  if (known->base != dptr || known->kind == memory_kind::global || known->kind == memory_kind::imported ||
      known->variable || is_mapped(known->kind) || names_host(known->kind)) {
    return CUDA_ERROR_INVALID_VALUE;
  }
  if (known->kind == memory_kind::graph)
    return free_graph_memory(own, dptr);  // the address stays the graph's
  context_state* context = p.objects().find_context(known->context);
  if (!context) return CUDA_ERROR_INVALID_VALUE;
  if (const int sticky = context->sticky.load()) return static_cast<CUresult>(sticky);
  if (!p.memory().addresses().remove(dptr)) return CUDA_ERROR_INVALID_VALUE;  // another thread freed it first
  if (known->kind == memory_kind::managed) return free_managed(own, *known);
  if (known->kind == memory_kind::pool) {  // the driver's address: the server knows whose it is
    request_of<api::opcode::cuMemFree_v2> r(own, marshal::unmap_body{dptr, known->size});
    r.in_context(context->handle);
    return r.call();
  }
  const bool own_granules = known->mapped != 0;
  const CUresult code = unmap(own, *context, dptr, own_granules ? known->mapped : 0);
  if (own_granules) return code;
  if (const std::uint64_t empty = context->small.give_back(dptr, known->size)) {
    return unmap(own, *context, empty, window_granule);
  }
  return code;
}

CUresult ends::cuMemGetInfo_v2(size_t* free, size_t* total) {
  lane& own = this_lane();
  if (const CUresult code = process::instance().gate(own); code != CUDA_SUCCESS) return code;
  request_of<api::opcode::cuMemGetInfo_v2> r(own);
  marshal::memory_info_reply info;
  if (const CUresult code = r.call(info); code != CUDA_SUCCESS) return code;
  if (free) *free = info.free;
  if (total) *total = info.total;
  return CUDA_SUCCESS;
}

CUresult ends::cuMemGetInfo(unsigned* free, unsigned* total) {
  size_t wide_free = 0, wide_total = 0;
  const CUresult code = ends::cuMemGetInfo_v2(&wide_free, &wide_total);
  const auto narrow = [](size_t v) { return static_cast<unsigned>(std::min<size_t>(v, 0xffffffffu)); };
  if (code == CUDA_SUCCESS && free) *free = narrow(wide_free);
  if (code == CUDA_SUCCESS && total) *total = narrow(wide_total);
  return code;
}

CUresult ends::cuMemGetAddressRange_v2(CUdeviceptr* pbase, size_t* psize, CUdeviceptr dptr) {
  process& p = process::instance();
  if (const CUresult code = p.gate(this_lane()); code != CUDA_SUCCESS) return code;
  const auto block = p.memory().addresses().find(dptr);
  if (!block || is_host(block->kind)) return CUDA_ERROR_NOT_FOUND;
  if (pbase) *pbase = block->base;
  if (psize) *psize = block->size;
  return CUDA_SUCCESS;
}

}  // namespace outboard::frontend::cuda
