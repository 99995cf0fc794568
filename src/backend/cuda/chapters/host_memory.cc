// Handlers of host memory that kernels see, and of managed memory.
#include <array>

#include "backend/cuda/device_wait.hh"
#include "backend/cuda/driver_call.hh"
#include "backend/cuda/ends.hh"
#include "backend/cuda/memory/with_room.hh"
#include "backend/cuda/session.hh"

namespace outboard::backend::ends {
namespace {

CUdevice number_of(const CUmemLocation& where) {
  return where.type == CU_MEM_LOCATION_TYPE_DEVICE ? where.id : CU_DEVICE_CPU;
}

}  // namespace

outcome cuMemHostGetDevicePointer_v2(call& c, const marshal::host_map_body& body) {
  if (body.kind >= marshal::host_block::count) return outcome::malformed();
  if (c.refused != CUDA_SUCCESS) return outcome::answer(c.refused);
  std::uint64_t address = 0;
  const CUresult code = c.session.mirrors().map(body, c.header.context, c.header.ticket, address);
  marshal::put_body(c.reply, marshal::address_reply{address});
  return outcome::answer(code);
}

/// Memory of ours that the client maps too: it can neither grow nor shrink under us.
outcome cuMemHostAlloc(call& c, const marshal::host_share_body& body) {
  if (c.refused != CUDA_SUCCESS) return outcome::answer(c.refused);
  if (!c.core.passes_descriptors()) return outcome::answer(CUDA_ERROR_NOT_SUPPORTED);
  unique_fd memory;
  const CUresult code = c.session.mirrors().share(body, c.header.context, memory);
  if (code == CUDA_SUCCESS) c.core.send_descriptor(c.header.ticket, memory.get());
  return outcome::answer(code);
}

/// Pinned and registered memory: no kernel sees it any more.
outcome cuMemFreeHost(call& c, const marshal::handle_body& body) {
  // The variable of a module that is being unloaded is not waited for: its pages are not ours.
  if (c.refused == CUDA_SUCCESS && c.session.mirrors().page_locked(body.handle)) {
    const device_wait wait(c);
    c.give_up_turn();
    (void)wait();
  }
  return outcome::answer(c.session.mirrors().drop(body.handle) ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE);
}

outcome cuMemAllocManaged(call& c, const marshal::managed_body& body) {
  if (c.refused != CUDA_SUCCESS) return outcome::answer(c.refused);
  std::uint64_t address = 0;
  CUdevice device = 0;
  CUresult code = c.driver().cuCtxGetDevice(&device);
  // As on a device without page faults (attributes 88, 89, 100): what is managed fits on it.
  const std::uint64_t bytes = mirrors::managed_size(body.size);
  if (code == CUDA_SUCCESS) {
    code = with_room(c, device, bytes, &quota::admit, [&] {
      return c.session.mirrors().allocate_managed(body, device, c.header.context, c.header.ticket, address);
    });
  }
  marshal::put_body(c.reply, marshal::address_reply{address});
  return outcome::answer(code);
}

/// Older drivers know devices and the host only, by number.
outcome cuMemPrefetchAsync_v2(call& c, const marshal::prefetch_body& body) {
  CUstream stream = nullptr;
  CUresult code = c.refused;
  if (code == CUDA_SUCCESS) code = c.objects().resolve_stream(body.stream, stream);
  if (code != CUDA_SUCCESS) return outcome::answer(code);
  const api::driver_table& d = c.driver();
  const CUmemLocation where{static_cast<CUmemLocationType>(body.location_type), body.location};
  const auto entry = body.per_thread ? d.cuMemPrefetchAsync_v2_ptsz : d.cuMemPrefetchAsync_v2;
  if (entry) return outcome::answer(entry(body.address, body.size, where, 0, stream));
  return outcome::answer(call_driver(body.per_thread ? d.cuMemPrefetchAsync_ptsz : d.cuMemPrefetchAsync,
                                     body.address, body.size, number_of(where), stream));
}

outcome cuMemAdvise_v2(call& c, const marshal::advise_body& body) {
  if (c.refused != CUDA_SUCCESS) return outcome::answer(c.refused);
  const CUmemLocation where{static_cast<CUmemLocationType>(body.location_type), body.location};
  const auto advice = static_cast<CUmem_advise>(body.advice);
  if (c.driver().cuMemAdvise_v2) {
    return outcome::answer(c.driver().cuMemAdvise_v2(body.address, body.size, advice, where));
  }
  return outcome::answer(
      call_driver(c.driver().cuMemAdvise, body.address, body.size, advice, number_of(where)));
}

outcome cuStreamAttachMemAsync(call& c, const marshal::attach_body& body) {
  CUstream stream = nullptr;
  CUresult code = c.refused;
  if (code == CUDA_SUCCESS) code = c.objects().resolve_stream(body.stream, stream);
  if (code != CUDA_SUCCESS) return outcome::answer(code);
  const api::driver_table& d = c.driver();
  return outcome::answer(
      call_driver(body.per_thread ? d.cuStreamAttachMemAsync_ptsz : d.cuStreamAttachMemAsync, stream,
                  body.address, 0, body.flags));
}

outcome cuMemRangeGetAttribute(call& c, const marshal::range_attribute_body& body) {
  constexpr std::uint32_t most = 1024;
  if (body.data_size == 0 || body.data_size > most) return outcome::malformed();
  if (c.refused != CUDA_SUCCESS) return outcome::answer(c.refused);
  std::array<std::byte, most> data{};
  const CUresult code =
      call_driver(c.driver().cuMemRangeGetAttribute, data.data(), body.data_size,
                  static_cast<CUmem_range_attribute>(body.attribute), body.address, body.size);
  c.reply.bytes(std::span(data).first(body.data_size));
  return outcome::answer(code);
}

outcome memory_update(call& c, std::span<const std::byte> changes) {
  return outcome::answer(c.session.mirrors().store(changes));
}

outcome memory_fetch(call& c) {
  marshal::memory_question question;
  if (!marshal::take_question(c.body, static_cast<marshal::service>(c.header.opcode), question))
    return outcome::malformed();
  if (c.refused != CUDA_SUCCESS) return outcome::answer(c.refused);
  c.give_up_turn();
  // What is complete is there before the answer: also a copy that came before a word which is found now.
  if (!question.watch) c.session.outgoing_copies().flush();
  std::vector<std::byte> changes;
  const CUresult code = c.session.mirrors().answer(question, c.header.context, changes);
  // A copy may have come between, and a word behind it.
  if (!changes.empty()) c.session.outgoing_copies().flush();
  marshal::put_body(c.reply, question.at);
  c.reply.bytes(changes);
  return outcome::answer(code);
}

outcome memory_fetch_live(call& c) { return memory_fetch(c); }

outcome memory_watch(call& c) { return memory_fetch(c); }

}  // namespace outboard::backend::ends
