// Chapters virtual memory and memory pool, between processes: descriptors that stand for memory and pools of
// the server (share_descriptor.hh), and pointers of pools. Codes were measured on driver 580.159.
#include "frontend/cuda/ends.hh"
#include "frontend/cuda/host_pages.hh"
#include "frontend/cuda/objects.hh"
#include "frontend/cuda/shared_handles.hh"

namespace outboard::frontend::cuda {
namespace {

constexpr auto by_descriptor = CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR;

shared_book& book() { return process::instance().memory().shared(); }
handle_table& allocations() { return process::instance().objects().handles(api::handle_kind::allocation); }
handle_table& pools() { return process::instance().objects().handles(api::handle_kind::memory_pool); }

int descriptor_of(void* handle) { return static_cast<int>(reinterpret_cast<std::intptr_t>(handle)); }

template <class Body>
CUresult share(lane& own, std::type_identity_t<opcode_for<Body, marshal::share_reply>> what,
               std::uint64_t context, const Body& body, marshal::share_token& token) {
  book().use();
  typed_request r(what, own, body);
  r.in_context(context);
  return call_for_token(r, token);
}

CUresult give_descriptor(void* out, share_kind kind, const marshal::share_token& token, unique_fd* watch) {
  auto made = make_share_descriptor(kind, token);
  if (!made) return CUDA_ERROR_OPERATING_SYSTEM;
  if (watch) *watch = std::move(made->watch);
  const int fd = made->given.release();
  std::memcpy(out, &fd, sizeof fd);
  return CUDA_SUCCESS;
}

/// 0: not imported, or destroyed again.
std::uint64_t imported_pool(const marshal::share_token& token) {
  std::uint64_t found = 0;
  pools().each([&](std::uint64_t handle, object& o) {
    const auto& info = static_cast<const pool_info&>(o);
    if (info.imported && info.token == token) found = handle;
  });
  return found;
}

CUmemAllocationProp properties_of(const marshal::allocation_body& body) {
  CUmemAllocationProp prop{};
  prop.type = static_cast<CUmemAllocationType>(body.type);
  prop.location.type = static_cast<CUmemLocationType>(body.location_type);
  prop.location.id = body.location;
  prop.allocFlags.compressionType = body.compression;
  prop.allocFlags.gpuDirectRDMACapable = body.rdma_capable;
  prop.allocFlags.usage = body.usage;
  return prop;  // what was imported cannot be exported again, so no handle types
}

}  // namespace

void sweep_shared(lane& own) {
  for (const marshal::share_token& token : book().forgotten()) {
    request_of<marshal::service::share_forget> r(own, marshal::share_reply{token});
    r.in_context(0);
    (void)r.call();
  }
}

CUresult ends::cuMemExportToShareableHandle(void* shareableHandle, CUmemGenericAllocationHandle handle,
                                            CUmemAllocationHandleType handleType, unsigned long long flags) {
  lane& own = this_lane();
  if (const CUresult code = process::instance().gate(own, false); code != CUDA_SUCCESS) return code;
  const auto* info = static_cast<const allocation_info*>(allocations().find(handle));
  if (!shareableHandle || flags != 0 || handleType != by_descriptor || !info || info->handles.load() <= 0 ||
      !(info->properties.requestedHandleTypes & by_descriptor)) {
    return CUDA_ERROR_INVALID_VALUE;
  }
  sweep_shared(own);
  marshal::share_token token;
  CUresult code = share(own, api::opcode::cuMemExportToShareableHandle, 0,
                        marshal::share_block_body{handle, info->size}, token);
  if (code != CUDA_SUCCESS) return code;
  unique_fd watch;
  code = give_descriptor(shareableHandle, share_kind::allocation, token, &watch);
  if (code == CUDA_SUCCESS) book().given(handle, token, std::move(watch));
  return code;
}

CUresult ends::cuMemImportFromShareableHandle(CUmemGenericAllocationHandle* handle, void* osHandle,
                                              CUmemAllocationHandleType shHandleType) {
  lane& own = this_lane();
  if (const CUresult code = process::instance().gate(own, false); code != CUDA_SUCCESS) return code;
  if (!handle) return CUDA_ERROR_INVALID_VALUE;
  if (shHandleType == CU_MEM_HANDLE_TYPE_FABRIC && osHandle) return CUDA_ERROR_NOT_SUPPORTED;
  if (shHandleType != by_descriptor) return CUDA_ERROR_INVALID_VALUE;
  const auto token = read_share_descriptor(share_kind::allocation, descriptor_of(osHandle));
  if (!token) {
    const bool of_a_pool = read_share_descriptor(share_kind::pool, descriptor_of(osHandle)).has_value();
    return of_a_pool ? CUDA_ERROR_NOT_SUPPORTED : CUDA_ERROR_UNKNOWN;
  }
  auto made = std::make_unique<allocation_info>();
  allocation_info* info = made.get();
  const std::uint64_t id = allocations().reserve(std::move(made));
  if (!id) return CUDA_ERROR_OUT_OF_MEMORY;
  book().use();
  std::vector<std::byte> reply;
  constexpr auto code = api::opcode::cuMemImportFromShareableHandle;
  const CUresult answer =
      call_for_pages<code>(own, marshal::share_import_body{id, *token}, reply, info->pages);
  if (answer != CUDA_SUCCESS) return allocations().release(id), answer;
  wire::reader from(reply);
  const auto about = marshal::take_body<marshal::allocation_body>(from);
  if (!from.finished()) return malformed_reply(code);
  info->size = about.size;
  info->properties = properties_of(about);
  return *handle = id, CUDA_SUCCESS;
}

CUresult ends::cuMemPoolExportToShareableHandle(void* handle_out, CUmemoryPool pool,
                                                CUmemAllocationHandleType handleType,
                                                unsigned long long flags) {
  lane& own = this_lane();
  if (const CUresult code = process::instance().gate(own, false); code != CUDA_SUCCESS) return code;
  const pool_info* info = find_object<pool_info>(pool);
  if (!handle_out || flags != 0 || handleType != by_descriptor || !info || !info->exportable)
    return CUDA_ERROR_INVALID_VALUE;
  marshal::share_token token;
  const CUresult code = share(own, api::opcode::cuMemPoolExportToShareableHandle, 0,
                              marshal::context_body{value_of(pool), info->device, 0}, token);
  return code == CUDA_SUCCESS ? give_descriptor(handle_out, share_kind::pool, token, nullptr) : code;
}

CUresult ends::cuMemPoolImportFromShareableHandle(CUmemoryPool* pool_out, void* handle,
                                                  CUmemAllocationHandleType handleType,
                                                  unsigned long long flags) {
  lane& own = this_lane();
  if (const CUresult code = process::instance().gate(own, false); code != CUDA_SUCCESS) return code;
  if (!pool_out || flags != 0 || handleType != by_descriptor) return CUDA_ERROR_INVALID_VALUE;
  const auto token = read_share_descriptor(share_kind::pool, descriptor_of(handle));
  if (!token) return CUDA_ERROR_UNKNOWN;
  book().use();
  if (const std::uint64_t known = imported_pool(*token)) {  // the same handle again, as a driver gives
    return *pool_out = reinterpret_cast<CUmemoryPool>(known), CUDA_SUCCESS;
  }
  auto made = std::make_unique<pool_info>();
  pool_info* info = made.get();
  info->imported = true;
  info->token = *token;
  const std::uint64_t id = pools().reserve(std::move(made));
  if (!id) return CUDA_ERROR_OUT_OF_MEMORY;
  request_of<api::opcode::cuMemPoolImportFromShareableHandle> r(own, marshal::share_import_body{id, *token});
  r.in_context(0);
  marshal::number_reply device;
  if (const CUresult code = r.call(device); code != CUDA_SUCCESS) return pools().release(id), code;
  info->device = static_cast<std::int32_t>(device.value);
  return *pool_out = reinterpret_cast<CUmemoryPool>(id), CUDA_SUCCESS;
}

CUresult ends::cuMemPoolExportPointer(CUmemPoolPtrExportData* shareData_out, CUdeviceptr ptr) {
  process& p = process::instance();
  lane& own = this_lane();
  if (const CUresult code = p.gate(own, false); code != CUDA_SUCCESS) return code;
  const auto block = p.memory().addresses().find(ptr);
  if (!shareData_out || !block || block->kind != memory_kind::pool || block->base != ptr)
    return CUDA_ERROR_INVALID_VALUE;
  const pool_info* from = find_object<pool_info>(reinterpret_cast<CUmemoryPool>(block->pool));
  if (!from || !from->exportable) return CUDA_ERROR_INVALID_VALUE;
  marshal::share_token token;
  const CUresult code = share(own, api::opcode::cuMemPoolExportPointer, block->context,
                              marshal::share_block_body{block->base, block->size}, token);
  if (code == CUDA_SUCCESS) write_handle(*shareData_out, token);
  return code;
}

CUresult ends::cuMemPoolImportPointer(CUdeviceptr* ptr_out, CUmemoryPool pool,
                                      CUmemPoolPtrExportData* shareData) {
  process& p = process::instance();
  lane& own = this_lane();
  if (const CUresult code = p.gate(own, false); code != CUDA_SUCCESS) return code;
  const pool_info* into = find_object<pool_info>(pool);
  if (!ptr_out || !shareData || !into || !into->imported) return CUDA_ERROR_INVALID_VALUE;
  const auto token = read_handle(*shareData);
  if (!token) return CUDA_ERROR_INVALID_VALUE;
  book().use();
  request_of<api::opcode::cuMemPoolImportPointer> r(own,
                                                    marshal::share_pointer_body{value_of(pool), 0, *token});
  marshal::share_pointer_reply got;
  if (const CUresult code = r.call(got); code != CUDA_SUCCESS) return code;
  memory_block block;
  block.base = got.address;
  block.size = got.size;
  block.kind = memory_kind::pool;
  block.context = own.current() ? own.context_handle() : p.objects().primary(into->device)->handle;
  block.device = into->device;
  block.pool = value_of(pool);
  if (const CUresult code = p.memory().insert_foreign(block); code != CUDA_SUCCESS) return code;
  return *ptr_out = got.address, CUDA_SUCCESS;
}

/// A dma-buf is an object of the server's kernel, and nothing on the client's machine could take one: devices
/// say so (attribute 124).
CUresult ends::cuMemGetHandleForAddressRange(void* handle, CUdeviceptr dptr, size_t size,
                                             CUmemRangeHandleType handleType, unsigned long long) {
  process& p = process::instance();
  if (const CUresult code = p.gate(this_lane(), false); code != CUDA_SUCCESS) return code;
  const bool known = p.memory().addresses().covers(dptr, size ? size : 1);
  if (!handle || size == 0 || handleType != CU_MEM_RANGE_HANDLE_TYPE_DMA_BUF_FD || !known)
    return CUDA_ERROR_INVALID_VALUE;
  return CUDA_ERROR_NOT_SUPPORTED;
}

}  // namespace outboard::frontend::cuda
