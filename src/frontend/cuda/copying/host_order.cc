#include "frontend/cuda/copying/host_order.hh"

#include <chrono>
#include <thread>

#include "frontend/cuda/chapters/capture.hh"
#include "frontend/cuda/contexts.hh"
#include "frontend/memory/live_memory.hh"

namespace outboard::frontend::cuda {
namespace {

/// Asks for nothing; whatever the server answers, it sends first what has become complete.
CUresult catch_up(lane& own) {
  std::vector<std::byte> reply;
  return call_apart<marshal::service::memory_fetch>(own, own.context_handle(), marshal::fetch_body{1, 0, 1},
                                                    reply);
}

CUresult wait_for_current(lane& own) {
  std::vector<std::byte> reply;
  own.how = answered::waited;
  return process::instance().server()->call(
      {static_cast<std::uint32_t>(api::opcode::cuCtxSynchronize), own.id, own.context_handle(), {}, {}},
      reply);
}

/// The place of a range in a block that the server has. What was on its way here has landed.
server_place place_in(lane& own, const shown_block& block, std::uint64_t address, std::uint64_t size) {
  if (const CUresult code = settle(own, reinterpret_cast<const void*>(address), size); code != CUDA_SUCCESS)
    return {code, 0};
  const std::uint64_t offset = address - block.base;
  if (size > block.size - offset) return {};
  if (!block.kernels) process::instance().memory().mirrors().add_part(block.base, {offset, offset + size});
  return {CUDA_SUCCESS, block.device_address + offset};
}

}  // namespace

std::optional<shown_block> same_pages(std::uint64_t address) {
  process& p = process::instance();
  if (p.memory().arena().in_use() && p.memory().arena().holds(address)) {
    const auto chunk = p.memory().arena().chunk_of(address);
    if (!chunk || !chunk->shared) return std::nullopt;
    return shown_block{chunk->base, chunk->size, chunk->base, shown_block::kept::once};
  }
  return made_by_program(address);
}

std::optional<shown_block> made_by_program(std::uint64_t address) {
  process& p = process::instance();
  if (!p.memory().virtual_memory().has_host()) return std::nullopt;
  const auto made = p.memory().virtual_memory().at(address);
  if (!made || !made->host) return std::nullopt;
  return shown_block{made->base, made->size, made->base, shown_block::kept::in_range};
}

std::optional<shown_block> shown(std::uint64_t address) {
  if (const auto same = same_pages(address)) return same;
  const mirrors& twice = process::instance().memory().mirrors();
  const auto found = twice.any() ? twice.find(address) : std::nullopt;
  if (!found) return std::nullopt;
  return shown_block{found->base, found->size, found->device_address, shown_block::kept::twice,
                     found->kernels};
}

bool page_locked(std::uint64_t address, std::uint64_t size) {
  const auto block = process::instance().memory().addresses().find(address);
  return block && is_host(block->kind) && size <= block->base + block->size - address;
}

CUresult settle(lane& own, const void* source, std::uint64_t size) {
  session& server = *process::instance().server();
  if (!server.copies_pending()) return CUDA_SUCCESS;
  const auto block = process::instance().memory().addresses().find(reinterpret_cast<std::uint64_t>(source));
  const std::uint64_t chunk = reinterpret_cast<std::uint64_t>(source);
  if (!process::instance().memory().arena().chunk_of(chunk) && (!block || !is_host(block->kind)))
    return CUDA_SUCCESS;
  const std::span<const std::byte> memory(static_cast<const std::byte*>(source), size);
  if (!server.copies_pending_to(memory)) return CUDA_SUCCESS;
  // A wait would end a capture, and streams may wait for what this thread does next; and other contexts may
  // have copies under way, too.
  const bool may_wait_for_us =
      server.callbacks_expected() || process::instance().memory().live().words_awaited();
  CUresult code = any_capture_open() || may_wait_for_us ? catch_up(own) : wait_for_current(own);
  while (code == CUDA_SUCCESS && server.copies_pending_to(memory)) {
    std::this_thread::sleep_for(std::chrono::microseconds(50));
    code = catch_up(own);
  }
  return code;
}

server_place place_on_server(lane& own, std::uint64_t address, std::uint64_t size) {
  const auto known = shown(address);
  return known ? place_in(own, *known, address, size) : server_place{};
}

server_place make_place_on_server(lane& own, std::uint64_t address, std::uint64_t size) {
  if (const auto known = shown(address)) return place_in(own, *known, address, size);
  if (!page_locked(address, size)) return {};
  const auto block = process::instance().memory().addresses().find(address);
  std::uint64_t there = 0;
  const CUresult code = device_pointer_of(own, *block, address, there, false);
  if (code == CUDA_ERROR_OUT_OF_MEMORY || code == CUDA_ERROR_MAP_FAILED) return {};
  return code == CUDA_SUCCESS ? place_on_server(own, address, size) : server_place{code, 0};
}

server_place place_behind_functions(lane& own, std::uint64_t address, std::uint64_t size) {
  process& p = process::instance();
  const bool later = p.server()->callbacks_expected() || p.memory().live().words_awaited();
  return later ? make_place_on_server(own, address, size) : place_on_server(own, address, size);
}

}  // namespace outboard::frontend::cuda
