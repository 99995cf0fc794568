// Handlers of device memory: mapping and unmapping in the window.
#include <algorithm>
#include <chrono>
#include <thread>

#include "backend/cuda/device_wait.hh"
#include "backend/cuda/ends.hh"
#include "backend/cuda/memory/memory_pools.hh"
#include "backend/cuda/memory/with_room.hh"
#include "backend/cuda/session.hh"
#include "backend/worker/activity.hh"

namespace outboard::backend {
namespace {

/// Warm workers start when a session has begun, and make a context each: programs would see free memory move
/// for no reason of theirs. The answer waits until they have, but no longer than this since it began.
constexpr std::chrono::seconds settling{2};

void await_settled(call& c) {
  const activity_page* page = c.core.activity();
  if (!page || page->unsettled_since.load() == 0) return;
  c.give_up_turn();
  const auto in_time = [&](std::uint64_t since) {
    const std::chrono::steady_clock::time_point began{std::chrono::milliseconds(since)};
    return since != 0 && std::chrono::steady_clock::now() < began + settling;
  };
  while (in_time(page->unsettled_since.load())) std::this_thread::sleep_for(std::chrono::milliseconds(1));
}

}  // namespace

outcome ends::cuMemAlloc_v2(call& c, const marshal::map_body& body) {
  if (c.refused != CUDA_SUCCESS) return outcome::answer(c.refused);
  CUdevice device = 0;
  if (const CUresult code = c.driver().cuCtxGetDevice(&device); code != CUDA_SUCCESS)
    return outcome::answer(code);
  std::uint64_t address = 0;
  const CUresult code = with_room(c, device, body.size, &quota::admit, [&] {
    address = body.address;
    return c.session.memory().map(address, body.size, device, c.header.context, c.header.ticket);
  });
  marshal::put_body(c.reply, marshal::address_reply{address});
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
  drop_variables_of_pool(c, body.address);
  const bool pooled = c.session.memory().pool_freed(body.address).has_value();
  // Managed memory first: what a pool had at this address may have gone without a word to the ledger, and a
  // mirror must not outlive its memory.
  if (c.session.mirrors().drop(body.address)) {
    code = CUDA_SUCCESS;
  } else if (pooled) {
    code = c.driver().cuMemFree_v2(body.address);
  } else {
    code = c.session.memory().unmap(body.address);
  }
  return outcome::answer(waited != CUDA_SUCCESS ? waited : code);
}

outcome ends::cuMemGetInfo_v2(call& c) {
  if (c.refused != CUDA_SUCCESS) return outcome::answer(c.refused);
  std::size_t free_bytes = 0, total = 0, allowed = 0;
  CUdevice device = 0;
  const bool limited = c.session.limits().is_set() && c.driver().cuCtxGetDevice(&device) == CUDA_SUCCESS;
  if (limited) allowed = c.session.limits().free_of(device, ~std::size_t{0});
  await_settled(c);
  const CUresult code = c.driver().cuMemGetInfo_v2(&free_bytes, &total);
  if (code == CUDA_SUCCESS && limited) {
    const auto& devices = c.session.facts().devices;
    if (static_cast<std::size_t>(device) < devices.size())
      total = devices[static_cast<std::size_t>(device)].total_memory;
    free_bytes = std::min(free_bytes, allowed);
  }
  marshal::put_body(c.reply, marshal::memory_info_reply{free_bytes, total});
  return outcome::answer(code);
}

outcome ends::ledger(call& c) {
  marshal::ledger_reply held;
  held.mapped = c.session.memory().bytes();
  held.pooled = bytes_of_pools(c);
  held.virtual_memory = c.session.virtual_memory().bytes();
  held.managed = c.session.mirrors().managed_bytes();
  held.pinned = c.session.mirrors().pinned_bytes() + c.session.virtual_memory().host_bytes();
  held.arrays = c.session.memory().array_bytes();
  held.staged = c.session.stage().bytes();
  marshal::put_body(c.reply, held);
  return outcome::answer(CUDA_SUCCESS);
}

}  // namespace outboard::backend
