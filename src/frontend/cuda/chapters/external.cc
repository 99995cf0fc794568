// Chapter external: memory and semaphores of others. A descriptor on the client leads to a device of the
// server only if it came from an export of a session (cuMemExportToShareableHandle): such memory is imported,
// mapped by virtual memory management. All others, and every semaphore (CUDA exports none), belong to
// graphics APIs on the client's machine: the driver's code for a foreign object.
#include <unistd.h>

#include <atomic>
#include <map>
#include <mutex>

#include "frontend/cuda/contexts.hh"
#include "frontend/cuda/ends.hh"
#include "frontend/cuda/gate.hh"
#include "frontend/cuda/graph_nodes.hh"

namespace outboard::frontend::cuda {
namespace {

using api::opcode;

struct external_info final : object {
  CUmemGenericAllocationHandle memory = 0;
  std::uint64_t size = 0;
};

struct range {
  CUdeviceptr base = 0;
  std::size_t size = 0;
};

/// What cuExternalMemoryGetMappedBuffer gave out, for cuMemFree.
struct mappings {
  std::mutex mutex;  // guards what follows
  std::map<CUdeviceptr, range> by_pointer;
  std::atomic<bool> any{false};
};

mappings& all_mappings() {
  static auto* const made = new mappings;  // never destroyed: calls come from destructors after main too
  return *made;
}

/// An entry of the driver by name: the one that imports may be missing.
template <class F>
F* entry(const char* name) {
  return reinterpret_cast<F*>(process::instance().find_export(name));
}

CUresult import(int descriptor, CUmemGenericAllocationHandle& out) {
  auto* take = entry<CUresult(CUmemGenericAllocationHandle*, void*, CUmemAllocationHandleType)>(
      "cuMemImportFromShareableHandle");
  void* const as_handle = reinterpret_cast<void*>(static_cast<std::intptr_t>(descriptor));
  const CUresult code = take(&out, as_handle, CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR);
  return code == CUDA_SUCCESS ? code : CUDA_ERROR_UNKNOWN;  // whatever was wrong with it, drivers say this
}

void unmap(const range& r) {
  (void)ends::cuMemUnmap(r.base, r.size);
  (void)ends::cuMemAddressFree(r.base, r.size);
}

/// Maps the granules that [offset, offset + size) touches.
CUresult map(const lane& own, const external_info& memory, std::uint64_t offset, std::uint64_t size,
             CUdeviceptr& pointer) {
  const std::uint64_t first = offset / window_granule * window_granule;
  const std::uint64_t end = (offset + size + window_granule - 1) / window_granule * window_granule;
  range r{0, end - first};
  if (const CUresult code = ends::cuMemAddressReserve(&r.base, r.size, 0, 0, 0); code != CUDA_SUCCESS)
    return code;
  CUresult code = ends::cuMemMap(r.base, r.size, first, memory.memory, 0);
  if (code != CUDA_SUCCESS) return (void)ends::cuMemAddressFree(r.base, r.size), code;
  CUmemAccessDesc access{};
  access.location.type = CU_MEM_LOCATION_TYPE_DEVICE;
  access.location.id = own.current()->device;
  access.flags = CU_MEM_ACCESS_FLAGS_PROT_READWRITE;
  code = ends::cuMemSetAccess(r.base, r.size, &access, 1);
  if (code != CUDA_SUCCESS) return unmap(r), code;
  pointer = r.base + (offset - first);
  mappings& m = all_mappings();
  const std::lock_guard lock(m.mutex);
  m.by_pointer[pointer] = r;
  m.any.store(true);
  return CUDA_SUCCESS;
}

/// No semaphore was ever imported.
CUresult no_semaphores(const void* semaphores, const void* parameters, unsigned count) {
  if (!semaphores || !parameters || count == 0) return CUDA_ERROR_INVALID_VALUE;
  return CUDA_ERROR_INVALID_HANDLE;
}

template <opcode Op>
CUresult use_semaphores(const void* semaphores, const void* parameters, unsigned count, CUstream stream) {
  if (const CUresult code = gate<Op>(this_lane()); code != CUDA_SUCCESS) return code;
  const CUresult code = no_semaphores(semaphores, parameters, count);
  return stream_ok(stream) ? code : CUDA_ERROR_INVALID_HANDLE;
}

template <opcode Op, class P>
CUresult node_of_semaphores(const void* out, CUgraph graph, const P* p) {
  if (const CUresult code = gate<Op>(this_lane()); code != CUDA_SUCCESS) return code;
  if (!out || !p || !graph_ok(graph)) return CUDA_ERROR_INVALID_VALUE;
  return no_semaphores(p->extSemArray, p->paramsArray, p->numExtSems);
}

/// No node is one of semaphores.
template <opcode Op>
CUresult other_node(const void*) {
  const CUresult code = gate<Op>(this_lane());
  return code == CUDA_SUCCESS ? CUDA_ERROR_INVALID_VALUE : code;
}

}  // namespace

bool free_external_mapping(CUdeviceptr pointer) {
  mappings& m = all_mappings();
  if (!m.any.load(std::memory_order_relaxed)) return false;
  range found;
  {
    const std::lock_guard lock(m.mutex);
    const auto at = m.by_pointer.find(pointer);
    if (at == m.by_pointer.end()) return false;
    found = at->second;
    m.by_pointer.erase(at);
  }
  (void)ends::cuCtxSynchronize();  // as cuMemFree does
  unmap(found);
  return true;
}

namespace ends {

CUresult cuImportExternalMemory(CUexternalMemory* out, const CUDA_EXTERNAL_MEMORY_HANDLE_DESC* about) {
  lane& own = this_lane();
  if (const CUresult code = gate<opcode::cuImportExternalMemory>(own); code != CUDA_SUCCESS) return code;
  constexpr unsigned known = CUDA_EXTERNAL_MEMORY_DEDICATED;
  if (!out || !about || about->size == 0 || (about->flags & ~known)) return CUDA_ERROR_INVALID_VALUE;
  if (about->type == 0) return CUDA_ERROR_INVALID_VALUE;
  if (about->type != CU_EXTERNAL_MEMORY_HANDLE_TYPE_OPAQUE_FD) {
    // Of other systems: drivers look for a handle before they refuse it.
    constexpr auto last =
        static_cast<int>(CU_EXTERNAL_MEMORY_HANDLE_TYPE_NVSCIBUF) + 1;  // a DMA buffer, since 12.9
    if (about->type > last) return CUDA_ERROR_INVALID_VALUE;
    const bool other = about->type == last || about->handle.win32.handle || about->handle.win32.name;
    return other ? CUDA_ERROR_NOT_SUPPORTED : CUDA_ERROR_INVALID_VALUE;
  }
  auto info = std::make_unique<external_info>();
  info->size = about->size;
  info->context = own.context_handle();
  if (const CUresult code = import(about->handle.fd, info->memory); code != CUDA_SUCCESS) return code;
  const CUmemGenericAllocationHandle memory = info->memory;
  const std::uint64_t handle =
      process::instance().objects().handles(api::handle_kind::external_memory).reserve(std::move(info));
  if (!handle) return (void)ends::cuMemRelease(memory), CUDA_ERROR_OUT_OF_MEMORY;
  ::close(about->handle.fd);  // it is the driver's now (manual)
  *out = reinterpret_cast<CUexternalMemory>(handle);
  return CUDA_SUCCESS;
}

CUresult cuExternalMemoryGetMappedBuffer(CUdeviceptr* out, CUexternalMemory memory,
                                         const CUDA_EXTERNAL_MEMORY_BUFFER_DESC* about) {
  lane& own = this_lane();
  if (const CUresult code = gate<opcode::cuExternalMemoryGetMappedBuffer>(own); code != CUDA_SUCCESS)
    return code;
  const auto* info = find_object<external_info>(memory);
  if (!out || !info || !about || about->flags || about->size == 0 || about->size > info->size ||
      about->offset > info->size - about->size) {
    return CUDA_ERROR_INVALID_VALUE;
  }
  return map(own, *info, about->offset, about->size, *out);
}

/// Images of graphics APIs only: their layout is that API's.
CUresult cuExternalMemoryGetMappedMipmappedArray(CUmipmappedArray* out, CUexternalMemory memory,
                                                 const CUDA_EXTERNAL_MEMORY_MIPMAPPED_ARRAY_DESC* about) {
  lane& own = this_lane();
  if (const CUresult code = gate<opcode::cuExternalMemoryGetMappedMipmappedArray>(own); code != CUDA_SUCCESS)
    return code;
  if (!out || !about || !find_object<external_info>(memory)) return CUDA_ERROR_INVALID_VALUE;
  return CUDA_ERROR_NOT_SUPPORTED;
}

CUresult cuDestroyExternalMemory(CUexternalMemory memory) {
  lane& own = this_lane();
  if (const CUresult code = gate<opcode::cuDestroyExternalMemory>(own); code != CUDA_SUCCESS) return code;
  const auto* info = find_object<external_info>(memory);
  if (!info) return CUDA_ERROR_INVALID_VALUE;
  const CUresult code = ends::cuMemRelease(info->memory);
  process::instance().objects().handles(api::handle_kind::external_memory).release(value_of(memory));
  return code;
}

CUresult cuImportExternalSemaphore(CUexternalSemaphore* out,
                                   const CUDA_EXTERNAL_SEMAPHORE_HANDLE_DESC* about) {
  lane& own = this_lane();
  if (const CUresult code = gate<opcode::cuImportExternalSemaphore>(own); code != CUDA_SUCCESS) return code;
  if (!out || !about || about->flags) return CUDA_ERROR_INVALID_VALUE;
  const bool descriptor = about->type == CU_EXTERNAL_SEMAPHORE_HANDLE_TYPE_OPAQUE_FD ||
                          about->type == CU_EXTERNAL_SEMAPHORE_HANDLE_TYPE_TIMELINE_SEMAPHORE_FD;
  if (about->type == CU_EXTERNAL_SEMAPHORE_HANDLE_TYPE_NVSCISYNC) return CUDA_ERROR_NOT_SUPPORTED;
  return descriptor ? CUDA_ERROR_UNKNOWN : CUDA_ERROR_INVALID_VALUE;
}

#define OUTBOARD_USE(symbol, parameters)                                                         \
  CUresult symbol(const CUexternalSemaphore* semaphores, const parameters* list, unsigned count, \
                  CUstream stream) {                                                             \
    return use_semaphores<opcode::symbol>(semaphores, list, count, stream);                      \
  }
OUTBOARD_USE(cuSignalExternalSemaphoresAsync, CUDA_EXTERNAL_SEMAPHORE_SIGNAL_PARAMS)
OUTBOARD_USE(cuSignalExternalSemaphoresAsync_ptsz, CUDA_EXTERNAL_SEMAPHORE_SIGNAL_PARAMS)
OUTBOARD_USE(cuWaitExternalSemaphoresAsync, CUDA_EXTERNAL_SEMAPHORE_WAIT_PARAMS)
OUTBOARD_USE(cuWaitExternalSemaphoresAsync_ptsz, CUDA_EXTERNAL_SEMAPHORE_WAIT_PARAMS)
#undef OUTBOARD_USE

CUresult cuDestroyExternalSemaphore(CUexternalSemaphore) {
  const CUresult code = gate<opcode::cuDestroyExternalSemaphore>(this_lane());
  return code == CUDA_SUCCESS ? CUDA_ERROR_INVALID_VALUE : code;
}

#define OUTBOARD_NODE(kind, parameters)                                                                  \
  CUresult cuGraphAddExternalSemaphores##kind##Node(CUgraphNode* out, CUgraph graph, const CUgraphNode*, \
                                                    size_t, const parameters* p) {                       \
    return node_of_semaphores<opcode::cuGraphAddExternalSemaphores##kind##Node>(out, graph, p);          \
  }                                                                                                      \
  CUresult cuGraphExternalSemaphores##kind##NodeGetParams(CUgraphNode, parameters* p) {                  \
    return other_node<opcode::cuGraphExternalSemaphores##kind##NodeGetParams>(p);                        \
  }                                                                                                      \
  CUresult cuGraphExternalSemaphores##kind##NodeSetParams(CUgraphNode, const parameters* p) {            \
    return other_node<opcode::cuGraphExternalSemaphores##kind##NodeSetParams>(p);                        \
  }                                                                                                      \
  CUresult cuGraphExecExternalSemaphores##kind##NodeSetParams(CUgraphExec, CUgraphNode,                  \
                                                              const parameters* p) {                     \
    return other_node<opcode::cuGraphExecExternalSemaphores##kind##NodeSetParams>(p);                    \
  }
OUTBOARD_NODE(Signal, CUDA_EXT_SEM_SIGNAL_NODE_PARAMS)
OUTBOARD_NODE(Wait, CUDA_EXT_SEM_WAIT_NODE_PARAMS)
#undef OUTBOARD_NODE

}  // namespace ends
}  // namespace outboard::frontend::cuda
