// Handlers of shareable handles: physical memory and pools by descriptor, pointers of pools. The descriptors
// of the driver go from worker to worker through the daemon; the client gets a token, and has descriptors of
// its own that stand for it.
#include <fcntl.h>

#include <algorithm>

#include "backend/cuda/driver_call.hh"
#include "backend/cuda/ends.hh"
#include "backend/cuda/sharing.hh"
#include "base/sealed_file.hh"

namespace outboard::backend {
namespace {

constexpr auto by_descriptor = CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR;

/// Exports what a table holds, once; later exports are the same offer.
template <class Export>
outcome share_object(call& c, share_class what, api::handle_kind kind, std::uint64_t handle,
                     Export&& export_it) {
  void* native = nullptr;
  CUresult code = c.objects().resolve(kind, handle, native);
  if (code != CUDA_SUCCESS) return outcome::answer(CUDA_ERROR_INVALID_VALUE);
  server_object& object = *c.objects().find(kind, handle);
  kept_offer offer = offer_of(object);
  if (!offer) {
    int exported = -1;
    share_about about;
    code = export_it(native, exported, about);
    if (code != CUDA_SUCCESS) return outcome::answer(code);
    const unique_fd fd(exported);
    offer = offer_shared(c, what, about, fd.get());
    if (!offer) code = CUDA_ERROR_OUT_OF_MEMORY;
    keep_offer(object, offer);
  }
  put_token(c, offer);
  return outcome::answer(code);
}

marshal::allocation_body described(const CUmemAllocationProp& prop, std::uint64_t handle,
                                   std::uint64_t size) {
  marshal::allocation_body body;
  body.handle = handle;
  body.size = size;
  body.type = prop.type;
  body.handle_types = prop.requestedHandleTypes;
  body.location_type = prop.location.type;
  body.location = prop.location.id;
  body.compression = prop.allocFlags.compressionType;
  body.rdma_capable = prop.allocFlags.gpuDirectRDMACapable;
  body.usage = prop.allocFlags.usage;
  return body;
}

outcome share_host_memory(call& c, const marshal::share_block_body& body) {
  return share_object(c, share_class::host_allocation, api::handle_kind::allocation, body.address,
                      [&](void*, int& fd, share_about& about) {
                        const virtual_ranges& ranges = c.session.virtual_memory();
                        const std::int32_t node = ranges.host_node(body.address);
                        const auto* first = reinterpret_cast<const std::uint8_t*>(&node);
                        about.mapped = about.size = body.size;
                        about.native.assign(first, first + sizeof node);
                        fd = ::fcntl(ranges.host_file(body.address), F_DUPFD_CLOEXEC, 0);
                        return fd < 0 ? CUDA_ERROR_OUT_OF_MEMORY : CUDA_SUCCESS;
                      });
}

/// Memory of the host that another session has made: whatever that says, its pages cannot go away.
outcome import_host_memory(call& c, const marshal::share_import_body& body, shared_thing&& found) {
  std::int32_t node = 0;
  const bool good = found.about.native.size() == sizeof node && found.descriptor &&
                    size_of_sealed_file(found.descriptor.get()) == found.about.size;
  if (good) std::memcpy(&node, found.about.native.data(), sizeof node);
  CUresult code = CUDA_SUCCESS;
  if (!good || !has_memory_node(node)) code = CUDA_ERROR_UNKNOWN;
  if (code == CUDA_SUCCESS && !c.core.passes_descriptors()) code = CUDA_ERROR_NOT_SUPPORTED;
  if (code == CUDA_SUCCESS && !c.session.mirrors().admits_page_locked(found.about.size))
    code = CUDA_ERROR_OUT_OF_MEMORY;
  const bool kept = code == CUDA_SUCCESS ? c.objects().create(body.handle, nullptr, c.as_record())
                                         : c.objects().fail(body.handle, code);
  if (!kept) return outcome::malformed();
  CUmemAllocationProp prop{};
  prop.type = CU_MEM_ALLOCATION_TYPE_PINNED;
  prop.location = {CU_MEM_LOCATION_TYPE_HOST_NUMA, node};
  if (code == CUDA_SUCCESS) {
    c.core.send_descriptor(c.header.ticket, found.descriptor.get());
    c.session.virtual_memory().created_on_host(body.handle, found.about.size, std::move(found.descriptor),
                                               node);
  }
  marshal::put_body(c.reply, described(prop, body.handle, found.about.size));
  return outcome::answer(code);
}

}  // namespace

namespace ends {

outcome cuMemExportToShareableHandle(call& c, const marshal::share_block_body& body) {
  // the handle, and the memory's size
  if (c.session.virtual_memory().host_file(body.address) >= 0) return share_host_memory(c, body);
  return share_object(c, share_class::allocation, api::handle_kind::allocation, body.address,
                      [&](void* native, int& fd, share_about& about) {
                        about.mapped = about.size = body.size;
                        return call_driver(c.driver().cuMemExportToShareableHandle, &fd,
                                           reinterpret_cast<CUmemGenericAllocationHandle>(native),
                                           by_descriptor, 0);
                      });
}

outcome cuMemImportFromShareableHandle(call& c, const marshal::share_import_body& body) {
  if (c.session.virtual_memory().knows(body.handle)) return outcome::malformed();
  const auto found = seek_shared(c, share_class::allocation, body.token);
  if (!found) {
    if (auto of_host = seek_shared(c, share_class::host_allocation, body.token))
      return import_host_memory(c, body, std::move(*of_host));
  }
  CUmemGenericAllocationHandle made = 0;
  CUmemAllocationProp prop{};
  CUresult code = CUDA_ERROR_UNKNOWN;  // what a driver says of a descriptor that is none of its own
  if (found && found->descriptor) {
    code = call_driver(c.driver().cuMemImportFromShareableHandle, &made, as_handle(found->descriptor),
                       by_descriptor);
  }
  if (code == CUDA_SUCCESS) {
    code = call_driver(c.driver().cuMemGetAllocationPropertiesFromHandle, &prop, made);
    if (code != CUDA_SUCCESS) call_driver(c.driver().cuMemRelease, made);
  }
  const bool kept = code == CUDA_SUCCESS
                        ? c.objects().create(body.handle, reinterpret_cast<void*>(made), c.as_record())
                        : c.objects().fail(body.handle, code);
  if (!kept) return outcome::malformed();
  marshal::put_body(c.reply, described(prop, body.handle, found ? found->about.size : 0));
  return outcome::answer(code);
}

/// The program has closed its last descriptor of memory that it had released before.
outcome share_forget(call& c, const marshal::share_reply& body) {
  c.session.lasting_offers().erase(body.token);
  return outcome::answer(CUDA_SUCCESS);
}

outcome cuMemPoolExportToShareableHandle(call& c, const marshal::context_body& body) {
  // the pool's handle, and its device
  return share_object(c, share_class::pool, api::handle_kind::memory_pool, body.handle,
                      [&](void* native, int& fd, share_about& about) {
                        name_device(c, body.device, about);
                        return call_driver(c.driver().cuMemPoolExportToShareableHandle, &fd,
                                           static_cast<CUmemoryPool>(native), by_descriptor, 0);
                      });
}

outcome cuMemPoolImportFromShareableHandle(call& c, const marshal::share_import_body& body) {
  const auto found = seek_shared(c, share_class::pool, body.token);
  CUmemoryPool made = nullptr;
  CUresult code = CUDA_ERROR_INVALID_VALUE;
  // A pool of a hidden device counts as one of the first.
  const std::int32_t device = found ? std::max(find_device(c, found->about), 0) : 0;
  if (found && found->descriptor) {
    code = call_driver(c.driver().cuMemPoolImportFromShareableHandle, &made, as_handle(found->descriptor),
                       by_descriptor, 0);
  }
  const bool kept = code == CUDA_SUCCESS ? c.objects().create(body.handle, made, c.as_record())
                                         : c.objects().fail(body.handle, code);
  if (!kept) return outcome::malformed();
  marshal::put_body(c.reply, marshal::number_reply{device});
  return outcome::answer(code);
}

outcome cuMemPoolExportPointer(call& c, const marshal::share_block_body& body) {
  const auto block = c.session.memory().pooled_at(body.address);
  if (!block || block->imported) return outcome::answer(CUDA_ERROR_INVALID_VALUE);
  kept_offer offer = block->offer;
  CUresult code = CUDA_SUCCESS;
  if (!offer) {
    CUmemPoolPtrExportData native{};
    code = call_driver(c.driver().cuMemPoolExportPointer, &native, body.address);
    if (code != CUDA_SUCCESS) return outcome::answer(code);
    share_about about;
    about.size = block->made.size;
    const auto* first = reinterpret_cast<const std::uint8_t*>(&native);
    about.native.assign(first, first + sizeof native);
    offer = offer_shared(c, share_class::pool_pointer, about, -1);
    if (!offer || !c.session.memory().keep_pool_offer(body.address, offer)) code = CUDA_ERROR_OUT_OF_MEMORY;
  }
  put_token(c, offer);
  return outcome::answer(code);
}

outcome cuMemPoolImportPointer(call& c, const marshal::share_pointer_body& body) {
  CUmemoryPool pool = nullptr;
  CUresult code = c.objects().resolve(body.pool, pool);
  if (code != CUDA_SUCCESS) return outcome::answer(CUDA_ERROR_INVALID_VALUE);
  const auto found = seek_shared(c, share_class::pool_pointer, body.token);
  CUmemPoolPtrExportData native{};
  if (!found || found->about.native.size() != sizeof native) return outcome::answer(CUDA_ERROR_INVALID_VALUE);
  std::memcpy(&native, found->about.native.data(), sizeof native);
  CUdeviceptr address = 0;
  code = call_driver(c.driver().cuMemPoolImportPointer, &address, pool, &native);
  if (code == CUDA_SUCCESS && body.address != 0 && body.address != address) {
    call_driver(c.driver().cuMemFree_v2, address);  // a record of another worker's
    code = CUDA_ERROR_MAP_FAILED;
  }
  if (code == CUDA_SUCCESS) {
    marshal::share_pointer_body made = body;
    made.address = address;
    c.session.memory().pool_imported(made, c.header.context, c.header.ticket);
  }
  marshal::put_body(c.reply, marshal::share_pointer_reply{address, found->about.size});
  return outcome::answer(code);
}

}  // namespace ends
}  // namespace outboard::backend
