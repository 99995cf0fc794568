// Entries of the chapter addressing that concern managed memory. Host and device share it, so what the
// program says of it is checked and remembered.
#include "device/cpu/machine.hh"

namespace outboard::device::cpu {
namespace {

/// The whole range lies in one managed block.
bool managed(std::uint64_t address, std::uint64_t size) {
  const auto block = here().store->lookup(address);
  return block && block->kind == memory_kind::managed && size != 0 &&
         size <= block->size - (address - block->begin);
}

CUresult place_of(const CUmemLocation& where, int& place) {
  switch (where.type) {
    case CU_MEM_LOCATION_TYPE_DEVICE:
      return place = 0, where.id == 0 ? CUDA_SUCCESS : CUDA_ERROR_INVALID_DEVICE;
    case CU_MEM_LOCATION_TYPE_HOST:
    case CU_MEM_LOCATION_TYPE_HOST_NUMA:
    case CU_MEM_LOCATION_TYPE_HOST_NUMA_CURRENT:
      return place = on_host, CUDA_SUCCESS;
    default:
      return CUDA_ERROR_INVALID_VALUE;
  }
}

template <bool PerThread>
CUresult prefetch(CUdeviceptr address, std::size_t size, CUmemLocation where, unsigned flags,
                  CUstream handle) {
  return with_context([&](context&, const context_ptr& c) -> CUresult {
    stream_ptr s;
    if (const CUresult r = stream_of(c, handle, PerThread, s); r != CUDA_SUCCESS) return r;
    int place = nowhere;
    if (const CUresult r = place_of(where, place); r != CUDA_SUCCESS) return r;
    if (flags != 0 || !managed(address, size)) return CUDA_ERROR_INVALID_VALUE;
    here().advice.prefetched(address, size, place);
    return CUDA_SUCCESS;
  });
}

CUresult advise(CUdeviceptr address, std::size_t size, CUmem_advise advice, CUmemLocation where) {
  return after_init([&]() -> CUresult {
    const bool of_a_place = advice == CU_MEM_ADVISE_SET_PREFERRED_LOCATION ||
                            advice == CU_MEM_ADVISE_SET_ACCESSED_BY ||
                            advice == CU_MEM_ADVISE_UNSET_ACCESSED_BY;
    int place = nowhere;
    if (const CUresult r = place_of(where, place); of_a_place && r != CUDA_SUCCESS) return r;
    if (!managed(address, size)) return CUDA_ERROR_INVALID_VALUE;
    return here().advice.advise(address, size, advice, place);
  });
}

CUresult get_range_attribute(void* out, std::size_t out_size, CUmem_range_attribute which,
                             CUdeviceptr address, std::size_t size) {
  return after_init([&]() -> CUresult {
    if (out == nullptr || out_size == 0 || !managed(address, size)) return CUDA_ERROR_INVALID_VALUE;
    return here().advice.get(address, size, which, out, out_size);
  });
}

template <bool PerThread>
CUresult attach(CUstream handle, CUdeviceptr address, std::size_t length, unsigned flags) {
  return with_context([&](context&, const context_ptr& c) -> CUresult {
    stream_ptr s;
    if (const CUresult r = stream_of(c, handle, PerThread, s); r != CUDA_SUCCESS) return r;
    const auto block = here().store->lookup(address);
    const bool whole = block && block->kind == memory_kind::managed && block->begin == address &&
                       (length == 0 || length == block->size);
    const bool known =
        flags == CU_MEM_ATTACH_GLOBAL || flags == CU_MEM_ATTACH_HOST || flags == CU_MEM_ATTACH_SINGLE;
    const bool alone = flags != CU_MEM_ATTACH_SINGLE || s->kind() != stream_kind::legacy;
    return whole && known && alone ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
  });
}

}  // namespace

void fill_managed_entries(api::driver_table& t) {
  t.cuMemPrefetchAsync_v2 = prefetch<false>;
  t.cuMemPrefetchAsync_v2_ptsz = prefetch<true>;
  t.cuMemAdvise_v2 = advise;
  t.cuMemRangeGetAttribute = get_range_attribute;
  t.cuStreamAttachMemAsync = attach<false>;
  t.cuStreamAttachMemAsync_ptsz = attach<true>;
}

}  // namespace outboard::device::cpu
