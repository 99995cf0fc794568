// Managed memory: the server's device allocates it, at an address that is then opened here as well, so one
// pointer serves both; its bytes travel as those of other host memory that kernels see (coherence.hh).
#include <algorithm>
#include <cstring>

#include "base/log.hh"
#include "frontend/cuda/chapters/capture.hh"
#include "frontend/cuda/code/code.hh"
#include "frontend/cuda/contexts.hh"
#include "frontend/cuda/copying/coherence.hh"
#include "frontend/cuda/ends.hh"
#include "frontend/cuda/gate.hh"
#include "frontend/memory/live_memory.hh"
#include "frontend/memory/managed_blocks.hh"

namespace outboard::frontend::cuda {
namespace {

/// Where the driver puts managed memory the program may have something of its own: then the next block is
/// tried.
constexpr int most_tries = 8;

std::uint64_t whole_granules(std::uint64_t size) {
  return (size + window_granule - 1) / window_granule * window_granule;
}

CUresult ask_for(lane& own, std::uint64_t size, unsigned flags, std::uint64_t& address) {
  request_of<api::opcode::cuMemAllocManaged> r(own, marshal::managed_body{size, 0, flags});
  marshal::address_reply made;
  const CUresult code = r.call(made);
  if (code == CUDA_SUCCESS) address = made.address;
  return code;
}

CUresult free_on_server(lane& own, std::uint64_t context, std::uint64_t address, std::uint64_t size) {
  request_of<api::opcode::cuMemFree_v2> r(own, marshal::unmap_body{address, size});
  r.in_context(context);
  return r.call();
}

CUresult allocate(lane& own, std::uint64_t size, unsigned flags, std::uint64_t& address) {
  process& p = process::instance();
  std::vector<std::uint64_t> unusable;
  CUresult code = CUDA_ERROR_MAP_FAILED;
  for (int i = 0; i < most_tries; ++i) {
    code = ask_for(own, size, flags, address);
    if (code != CUDA_SUCCESS || p.memory().open_foreign(address, whole_granules(size))) break;
    unusable.push_back(address);
    code = CUDA_ERROR_MAP_FAILED;
  }
  for (const std::uint64_t u : unusable) (void)free_on_server(own, own.context_handle(), u, size);
  if (code == CUDA_ERROR_MAP_FAILED) {
    log::error("the device's managed memory lies where this process has something of its own, ", most_tries,
               " times");
  }
  return code;
}

/// Of a block whose addresses are claimed, where the program may use it while kernels do.
CUresult view_of(std::uint64_t address, std::uint64_t size, std::uint64_t used, bool variable,
                 std::byte*& view) {
  process& p = process::instance();
  if (!p.memory().concurrent_managed()) return CUDA_SUCCESS;
  if (!p.memory().managed().start(*p.server(), questions())) {
    log::error("managed memory: no descriptors left for watching its pages");
    return CUDA_ERROR_OPERATING_SYSTEM;
  }
  view = p.memory().managed().add(address, size, used, variable);
  return view ? CUDA_SUCCESS : CUDA_ERROR_OUT_OF_MEMORY;
}

/// The managed block that holds all of the range, or nothing.
std::optional<memory_block> managed_range(CUdeviceptr at, std::size_t size) {
  const auto block = process::instance().memory().addresses().find(at);
  const bool inside =
      block && block->kind == memory_kind::managed && size != 0 && size <= block->size - (at - block->base);
  return inside ? block : std::nullopt;
}

CUmemLocation location_of(CUdevice device) {
  if (device == CU_DEVICE_CPU) return {CU_MEM_LOCATION_TYPE_HOST, 0};
  return {CU_MEM_LOCATION_TYPE_DEVICE, device};
}

CUresult check_location(const CUmemLocation& where) {
  switch (where.type) {
    case CU_MEM_LOCATION_TYPE_DEVICE:
      return process::instance().objects().primary(where.id) ? CUDA_SUCCESS : CUDA_ERROR_INVALID_DEVICE;
    case CU_MEM_LOCATION_TYPE_HOST:
    case CU_MEM_LOCATION_TYPE_HOST_NUMA:
    case CU_MEM_LOCATION_TYPE_HOST_NUMA_CURRENT:
      return CUDA_SUCCESS;
    default:
      return CUDA_ERROR_INVALID_VALUE;
  }
}

CUresult prefetch(CUdeviceptr at, std::size_t size, const CUmemLocation& where, unsigned flags,
                  CUstream stream, bool per_thread) {
  process& p = process::instance();
  lane& own = this_lane();
  if (const CUresult code = p.gate(own); code != CUDA_SUCCESS) return code;
  if (!stream_ok(stream)) return CUDA_ERROR_INVALID_HANDLE;
  if (const CUresult code = refuse_captured(own, stream, per_thread); code != CUDA_SUCCESS) return code;
  if (flags != 0 || !managed_range(at, size)) return CUDA_ERROR_INVALID_VALUE;
  if (const CUresult code = check_location(where); code != CUDA_SUCCESS) return code;
  request_of<api::opcode::cuMemPrefetchAsync_v2> r(
      own, marshal::prefetch_body{at, size, value_of(stream), static_cast<std::int32_t>(where.type), where.id,
                                  per_thread});
  r.in_stream(stream, per_thread);
  return r.call();
}

CUresult advise(CUdeviceptr at, std::size_t size, CUmem_advise advice, const CUmemLocation& where) {
  lane& own = this_lane();
  if (const CUresult code = process::instance().gate(own, false); code != CUDA_SUCCESS) return code;
  if (!managed_range(at, size)) return CUDA_ERROR_INVALID_VALUE;
  const bool about_all = advice == CU_MEM_ADVISE_SET_READ_MOSTLY ||
                         advice == CU_MEM_ADVISE_UNSET_READ_MOSTLY ||
                         advice == CU_MEM_ADVISE_UNSET_PREFERRED_LOCATION;  // their location means nothing
  if (check_location(where) != CUDA_SUCCESS && !about_all) return CUDA_ERROR_INVALID_VALUE;
  request_of<api::opcode::cuMemAdvise_v2> r(
      own, marshal::advise_body{at, size, static_cast<std::int32_t>(advice),
                                static_cast<std::int32_t>(where.type), where.id});
  return r.call();
}

CUresult attach(CUstream stream, CUdeviceptr at, std::size_t length, unsigned flags, bool per_thread) {
  process& p = process::instance();
  lane& own = this_lane();
  if (const CUresult code = p.gate(own); code != CUDA_SUCCESS) return code;
  if (!stream_ok(stream)) return CUDA_ERROR_INVALID_HANDLE;
  const auto block = p.memory().addresses().find(at);
  const bool known =
      flags == CU_MEM_ATTACH_GLOBAL || flags == CU_MEM_ATTACH_HOST || flags == CU_MEM_ATTACH_SINGLE;
  const bool whole = block && block->kind == memory_kind::managed && block->base == at &&
                     (length == 0 || length == block->size);
  // A single stream cannot be the one that all others wait for.
  if (!known || !whole || (flags == CU_MEM_ATTACH_SINGLE && value_of(stream) <= 1 && !per_thread)) {
    return CUDA_ERROR_INVALID_VALUE;
  }
  // The server's block is larger than the program's by what rounds it up, so its whole is meant there.
  request_of<api::opcode::cuStreamAttachMemAsync> r(
      own, marshal::attach_body{at, value_of(stream), flags, per_thread});
  const CUresult code = r.call();
  if (code != CUDA_SUCCESS || !p.memory().managed().started()) return code;
  const bool own_stream = value_of(stream) == 2 || (!stream && per_thread);
  const std::uint64_t single = own_stream ? work_flow::of_lane(own.id) : value_of(stream);
  p.memory().managed().attach(at, flags == CU_MEM_ATTACH_GLOBAL ? 0
                                  : flags == CU_MEM_ATTACH_HOST ? managed_blocks::nobody
                                                                : single);
  return CUDA_SUCCESS;
}

}  // namespace

CUresult open_managed(lane& own, std::uint64_t address, std::uint64_t size) {
  process& p = process::instance();
  const std::lock_guard lock(p.memory().showing());
  if (p.memory().mirrors().find(address)) return CUDA_SUCCESS;
  if (!p.memory().open_foreign(address, size)) return CUDA_ERROR_MAP_FAILED;
  p.memory().use_host_memory();
  std::byte* view = nullptr;
  if (const CUresult code = view_of(address, size, size, true, view); code != CUDA_SUCCESS) return code;
  std::uint64_t there = 0;
  const CUresult code = show_block(own, address, size, marshal::host_block::managed, there, view);
  if (code != CUDA_SUCCESS) return p.memory().managed().remove(address), code;
  p.memory().mirrors().work_begins(
      own.context_handle());  // kernels may have run: what it holds is the server's to say
  return p.memory().mirrors().fetch(*p.server(), own, p.memory().live().any());
}

CUresult free_managed(lane& own, const memory_block& block) {
  process& p = process::instance();
  p.memory().mirrors().remove(block.base);  // nobody looks at our view of it any more
  p.memory().managed().remove(block.base);
  // Before the server frees it: from then on another thread may be given memory at this address.
  p.memory().close_foreign(block.base, whole_granules(block.size));
  return free_on_server(own, block.context, block.base, block.size);
}

void forget_managed(const memory_block& block) {
  process::instance().memory().managed().remove(block.base);
  process::instance().memory().close_foreign(block.base, whole_granules(block.size));
}

namespace ends {

CUresult cuMemAllocManaged(CUdeviceptr* dptr, size_t bytesize, unsigned flags) {
  process& p = process::instance();
  lane& own = this_lane();
  if (const CUresult code = p.gate(own); code != CUDA_SUCCESS) return code;
  const bool known = flags == CU_MEM_ATTACH_GLOBAL || flags == CU_MEM_ATTACH_HOST;
  if (!dptr || bytesize == 0 || !known) return CUDA_ERROR_INVALID_VALUE;
  if (bytesize > 1ull << 46) return CUDA_ERROR_OUT_OF_MEMORY;
  memory_block block;
  block.size = bytesize;
  block.kind = memory_kind::managed;
  block.context = own.context_handle();
  block.device = own.current()->device;
  block.flags = flags;
  if (const CUresult code = allocate(own, bytesize, flags, block.base); code != CUDA_SUCCESS) return code;
  mirror made;
  made.base = made.device_address = block.base;
  made.size = whole_granules(bytesize);
  made.context = block.context;
  if (const CUresult code = view_of(made.base, made.size, bytesize, false, made.memory); code != CUDA_SUCCESS)
    return free_managed(own, block), code;
  made.file = made.memory ? p.memory().managed().file() : -1;
  if (!p.memory().mirrors().add(made)) return free_managed(own, block), CUDA_ERROR_OUT_OF_MEMORY;
  p.memory().use_host_memory();
  p.memory().addresses().insert(block);
  *dptr = block.base;
  return CUDA_SUCCESS;
}

CUresult cuLibraryGetManaged(CUdeviceptr* address, std::size_t* size, CUlibrary library, const char* name) {
  lane& own = this_lane();
  if (const CUresult code = gate<api::opcode::cuLibraryGetManaged>(own); code != CUDA_SUCCESS) return code;
  auto* info = find_object<module_info>(library);
  if (!info) return CUDA_ERROR_INVALID_HANDLE;
  return variable_by_name(own,
                          {.code = api::opcode::cuLibraryGetManaged,
                           .owner = *info,
                           .owner_handle = value_of(library),
                           .name = name,
                           .managed = true},
                          address, size);
}

CUresult cuMemPrefetchAsync(CUdeviceptr at, size_t size, CUdevice device, CUstream stream) {
  return prefetch(at, size, location_of(device), 0, stream, false);
}
CUresult cuMemPrefetchAsync_ptsz(CUdeviceptr at, size_t size, CUdevice device, CUstream stream) {
  return prefetch(at, size, location_of(device), 0, stream, true);
}
CUresult cuMemPrefetchAsync_v2(CUdeviceptr at, size_t size, CUmemLocation where, unsigned flags,
                               CUstream stream) {
  return prefetch(at, size, where, flags, stream, false);
}
CUresult cuMemPrefetchAsync_v2_ptsz(CUdeviceptr at, size_t size, CUmemLocation where, unsigned flags,
                                    CUstream stream) {
  return prefetch(at, size, where, flags, stream, true);
}

CUresult cuMemAdvise(CUdeviceptr at, size_t size, CUmem_advise advice, CUdevice device) {
  return advise(at, size, advice, location_of(device));
}
CUresult cuMemAdvise_v2(CUdeviceptr at, size_t size, CUmem_advise advice, CUmemLocation where) {
  return advise(at, size, advice, where);
}

CUresult cuMemRangeGetAttributes(void** data, size_t* sizes, CUmem_range_attribute* attributes, size_t count,
                                 CUdeviceptr at, size_t size) {
  if (const CUresult code = process::instance().gate(this_lane(), false); code != CUDA_SUCCESS) return code;
  if (!data || !sizes || !attributes || count == 0) return CUDA_ERROR_INVALID_VALUE;
  for (size_t i = 0; i < count; ++i) {
    const CUresult code = ends::cuMemRangeGetAttribute(data[i], sizes[i], attributes[i], at, size);
    if (code != CUDA_SUCCESS) return code;
  }
  return CUDA_SUCCESS;
}

CUresult cuMemRangeGetAttribute(void* data, size_t data_size, CUmem_range_attribute attribute, CUdeviceptr at,
                                size_t size) {
  lane& own = this_lane();
  if (const CUresult code = process::instance().gate(own, false); code != CUDA_SUCCESS) return code;
  constexpr size_t most = 1024;  // numbers, and a list of devices
  if (!data || data_size == 0 || data_size % sizeof(int) || data_size > most || !managed_range(at, size)) {
    return CUDA_ERROR_INVALID_VALUE;
  }
  request_of<api::opcode::cuMemRangeGetAttribute> r(
      own, marshal::range_attribute_body{at, size, static_cast<std::int32_t>(attribute),
                                         static_cast<std::uint32_t>(data_size)});
  if (const CUresult code = r.call(); code != CUDA_SUCCESS) return code;
  wire::reader from = r.reply();
  const auto bytes = from.bytes(data_size);
  if (!from.finished()) return r.malformed();
  std::memcpy(data, bytes.data(), data_size);
  return CUDA_SUCCESS;
}

CUresult cuStreamAttachMemAsync(CUstream stream, CUdeviceptr at, size_t length, unsigned flags) {
  return attach(stream, at, length, flags, false);
}
CUresult cuStreamAttachMemAsync_ptsz(CUstream stream, CUdeviceptr at, size_t length, unsigned flags) {
  return attach(stream, at, length, flags, true);
}

}  // namespace ends
}  // namespace outboard::frontend::cuda
