// Handlers of the chapter virtual memory. Addresses are checked by the driver, which knows what lies where.
#include "backend/cuda/driver_call.hh"
#include "backend/cuda/ends.hh"
#include "backend/cuda/memory/with_room.hh"
#include "backend/cuda/sharing.hh"
#include "base/sealed_file.hh"

namespace outboard::backend {
namespace {

constexpr std::size_t most_locations = 64;

CUmemAllocationProp properties_of(const marshal::allocation_body& body) {
  CUmemAllocationProp prop{};
  prop.type = static_cast<CUmemAllocationType>(body.type);
  prop.requestedHandleTypes = static_cast<CUmemAllocationHandleType>(body.handle_types);
  prop.location.type = static_cast<CUmemLocationType>(body.location_type);
  prop.location.id = body.location;
  prop.allocFlags.compressionType = body.compression;
  prop.allocFlags.gpuDirectRDMACapable = body.rdma_capable;
  prop.allocFlags.usage = body.usage;
  return prop;
}

CUresult native_memory(call& c, std::uint64_t handle, CUmemGenericAllocationHandle& out) {
  void* native = nullptr;
  const CUresult code = c.objects().resolve(api::handle_kind::allocation, handle, native);
  if (code == CUDA_SUCCESS) out = reinterpret_cast<CUmemGenericAllocationHandle>(native);
  return code == CUDA_ERROR_INVALID_HANDLE ? CUDA_ERROR_INVALID_VALUE : code;
}

/// Memory of the host, of which the client gets the pages: both sides map them, wherever the program does.
outcome create_on_host(call& c, const marshal::allocation_body& body) {
  unique_fd file;
  CUresult code = CUDA_SUCCESS;
  if (!c.core.passes_descriptors()) {
    code = CUDA_ERROR_NOT_SUPPORTED;
  } else if (body.location_type != CU_MEM_LOCATION_TYPE_HOST_NUMA || !has_memory_node(body.location)) {
    code = CUDA_ERROR_INVALID_VALUE;
  } else if (!c.session.mirrors().admits_page_locked(body.size)) {
    code = CUDA_ERROR_OUT_OF_MEMORY;
  } else {
    file = make_sealed_file(body.size, "outboard-host-memory");
    if (!file) code = CUDA_ERROR_OUT_OF_MEMORY;
  }
  const bool kept = code == CUDA_SUCCESS ? c.objects().create(body.handle, nullptr, c.as_record())
                                         : c.objects().fail(body.handle, code);
  if (!kept) return outcome::malformed();
  if (code == CUDA_SUCCESS) {
    c.core.send_descriptor(c.header.ticket, file.get());
    c.session.virtual_memory().created_on_host(body.handle, body.size, std::move(file), body.location);
  }
  return outcome::answer(code);
}

}  // namespace

namespace ends {

outcome cuMemAddressReserve(call& c, const marshal::range_body& body) {
  std::uint64_t address = 0;
  const CUresult code = c.session.virtual_memory().reserve(body, c.header.ticket, address);
  marshal::put_body(c.reply, marshal::address_reply{address});
  return outcome::answer(code);
}

outcome cuMemAddressFree(call& c, const marshal::range_body& body) {
  return outcome::answer(c.session.virtual_memory().free(body.address, body.size));
}

outcome cuMemCreate(call& c, const marshal::allocation_body& body) {
  if (c.session.virtual_memory().knows(body.handle)) return outcome::malformed();
  if (body.location_type != CU_MEM_LOCATION_TYPE_DEVICE) return create_on_host(c, body);
  CUmemAllocationProp prop = properties_of(body);
  // Ours to decide where the program can: a session that is rebuilt elsewhere asks for the same.
  prop.requestedHandleTypes =
      static_cast<CUmemAllocationHandleType>(body.handle_types & CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR);
  CUmemGenericAllocationHandle made = 0;
  const CUresult code = with_room(c, body.location, body.size, &quota::admit, [&] {
    return call_driver(c.driver().cuMemCreate, &made, body.size, &prop, 0);
  });
  const bool kept = code == CUDA_SUCCESS
                        ? c.objects().create(body.handle, reinterpret_cast<void*>(made), c.as_record())
                        : c.objects().fail(body.handle, code);
  if (!kept) return outcome::malformed();
  if (code == CUDA_SUCCESS) c.session.virtual_memory().created(body.handle, body.size, body.location);
  return outcome::answer(code);
}

outcome cuMemRelease(call& c, const marshal::release_body& body) {
  CUmemGenericAllocationHandle memory = 0;
  CUresult code = native_memory(c, body.handle, memory);
  const bool of_host = c.session.virtual_memory().host_file(body.handle) >= 0;
  if (code == CUDA_SUCCESS && !of_host) code = call_driver(c.driver().cuMemRelease, memory);
  if (code != CUDA_SUCCESS) return outcome::answer(code);
  // Descriptors that the program still has hold the memory, as the driver's own would.
  const server_object& gone = *c.objects().find(api::handle_kind::allocation, body.handle);
  if (const kept_offer offer = offer_of(gone); offer && body.keep)
    c.session.lasting_offers().emplace(*offer, gone.extra);
  c.session.virtual_memory().released(body.handle);
  c.objects().erase(body.handle);
  return outcome::answer(code);
}

outcome cuMemMap(call& c, const marshal::mapping_body& body) {
  CUmemGenericAllocationHandle memory = 0;
  CUresult code = native_memory(c, body.handle, memory);
  if (code != CUDA_SUCCESS) return outcome::answer(code);
  virtual_ranges& ranges = c.session.virtual_memory();
  if (ranges.host_file(body.handle) < 0) return outcome::answer(ranges.map(body, memory, c.header.ticket));
  // Pages are laid over whatever is there: it must be a reservation, and nothing else.
  const bool vacant = ranges.vacant(body.address, body.size) ||
                      (c.session.memory().vacant_in_window(body.address, body.size) &&
                       !ranges.maps_in(body.address, body.size));
  return outcome::answer(vacant ? ranges.map_host(body, c.header.ticket) : CUDA_ERROR_INVALID_VALUE);
}

outcome cuMemUnmap(call& c, const marshal::range_body& body) {
  virtual_ranges& ranges = c.session.virtual_memory();
  std::vector<host_piece> going;
  const CUresult code = ranges.unmap(body.address, body.size, going);
  if (going.empty()) return outcome::answer(code);
  // The driver waits for all work: others go on meanwhile.
  c.give_up_turn();
  ranges.end_pieces(going);
  return outcome::answer(code);
}

outcome cuMemSetAccess(call& c, const marshal::access_body& body) {
  if (body.access.size() % 3 != 0 || body.access.size() > 3 * most_locations) {
    return outcome::malformed();
  }
  std::vector<CUmemAccessDesc> access(body.access.size() / 3);
  for (std::size_t i = 0; i < access.size(); ++i) {
    access[i].location.type = static_cast<CUmemLocationType>(body.access[3 * i]);
    access[i].location.id = body.access[3 * i + 1];
    access[i].flags = static_cast<CUmemAccess_flags>(body.access[3 * i + 2]);
    const CUmemLocation& where = access[i].location;
    const bool device = where.type == CU_MEM_LOCATION_TYPE_DEVICE && where.id >= 0 &&
                        static_cast<std::size_t>(where.id) < c.session.facts().devices.size();
    if (!device) return outcome::answer(CUDA_ERROR_INVALID_VALUE);
  }
  return outcome::answer(c.session.virtual_memory().set_access(body, access));
}

outcome cuMemGetAccess(call& c, const marshal::access_question_body& body) {
  const CUmemLocation where{static_cast<CUmemLocationType>(body.location_type), body.location};
  unsigned long long flags = 0;
  const CUresult code = call_driver(c.driver().cuMemGetAccess, &flags, &where, body.address);
  marshal::put_body(c.reply, marshal::number_reply{static_cast<std::int64_t>(flags)});
  return outcome::answer(code);
}

outcome cuMemGetAllocationGranularity(call& c, const marshal::allocation_body& body) {
  const CUmemAllocationProp prop = properties_of(body);
  std::size_t granularity = 0;
  const CUresult code = call_driver(c.driver().cuMemGetAllocationGranularity, &granularity, &prop,
                                    static_cast<CUmemAllocationGranularity_flags>(body.option));
  marshal::put_body(c.reply, marshal::number_reply{static_cast<std::int64_t>(granularity)});
  return outcome::answer(code);
}

}  // namespace ends
}  // namespace outboard::backend
