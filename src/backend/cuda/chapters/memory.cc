// Handlers of device memory: mapping and unmapping in the window.
#include "backend/cuda/chapters/memory_pool.hh"
#include "backend/cuda/cuda_session.hh"
#include "backend/cuda/device_wait.hh"
#include "backend/cuda/ends.hh"
#include "backend/cuda/memory/with_room.hh"

namespace outboard::backend {

outcome ends::cuMemAlloc_v2(call& c, const marshal::map_body& body, marshal::address_reply& reply) {
  if (c.refused != CUDA_SUCCESS) return outcome::answer(c.refused);
  CUdevice device = 0;
  if (const CUresult code = c.driver().cuCtxGetDevice(&device); code != CUDA_SUCCESS)
    return outcome::answer(code);
  quota::reservation room;
  CUresult code = c.session.limits().admit(device, body.size, room);
  reply.address = body.address;
  if (code == CUDA_SUCCESS)
    code = with_room(c, [&] {
      return c.session.memory().map(reply.address, body.size, device, c.header.context, c.header.ticket);
    });
  return outcome::answer(code);
}

outcome ends::cuMemFree_v2(call& c, const marshal::unmap_body& body) {
  if (c.refused != CUDA_SUCCESS) return outcome::answer(c.refused);
  // cuMemFree waits for the device (manual, "implicit synchronization"), and memory in use must not be
  // unmapped.
  const device_wait wait(c);
  c.give_up_turn();
  const CUresult waited = wait();
  c.session.memory().forget_offer(body.address);
  if (body.size == 0) return outcome::answer(waited);
  CUresult code = CUDA_SUCCESS;
  if (const auto device = c.session.memory().pool_freed(body.address)) {
    c.session.mirrors().drop_inside(body.address);
    code = c.driver().cuMemFree_v2(body.address);
  } else if (c.session.mirrors().drop(body.address)) {
    code = CUDA_SUCCESS;  // managed
  } else {
    code = c.session.memory().unmap(body.address);
  }
  return outcome::answer(waited != CUDA_SUCCESS ? waited : code);
}

outcome ends::cuMemGetInfo_v2(call& c, marshal::memory_info_reply& reply) {
  if (c.refused != CUDA_SUCCESS) return outcome::answer(c.refused);
  std::size_t free_bytes = 0, total = 0;
  const CUresult code = c.driver().cuMemGetInfo_v2(&free_bytes, &total);
  CUdevice device = 0;
  if (code == CUDA_SUCCESS && c.driver().cuCtxGetDevice(&device) == CUDA_SUCCESS &&
      c.session.limits().is_set(device)) {
    const auto& devices = c.session.facts().devices;
    if (static_cast<std::size_t>(device) < devices.size())
      total = devices[static_cast<std::size_t>(device)].total_memory;
    free_bytes = c.session.limits().free_of(device, free_bytes);
  }
  reply = {free_bytes, total};
  return outcome::answer(code);
}

outcome ends::ledger(call& c, marshal::ledger_reply& held) {
  held.mapped = c.session.memory().bytes();
  held.pooled = bytes_of_pools(c);
  held.virtual_memory = c.session.virtual_memory().bytes();
  held.managed = c.session.mirrors().managed_bytes();
  held.pinned = c.session.mirrors().pinned_bytes();
  held.arrays = c.session.memory().array_bytes();
  held.staged = c.session.stage().bytes();
  return outcome::answer(CUDA_SUCCESS);
}

}  // namespace outboard::backend
