#include "frontend/cuda/memory/freed_blocks.hh"

#include <algorithm>

#include "frontend/cuda/typed_opcode.hh"

namespace outboard::frontend {

bool freed_blocks::keep(const freed_block& freed) {
  const std::lock_guard lock(mutex_);
  if (blocks_.size() >= most) return false;
  blocks_.push_back(freed);
  any_.store(true, std::memory_order_release);
  return true;
}

std::optional<memory_block> freed_blocks::take(const freed_block& wanted) {
  if (!any()) return std::nullopt;
  const std::lock_guard lock(mutex_);
  const auto fits = [&](const freed_block& b) {
    return b.block.size == wanted.block.size && b.stream == wanted.stream &&
           b.block.pool == wanted.block.pool && b.block.context == wanted.block.context &&
           b.block.device == wanted.block.device;
  };
  const auto found = std::find_if(blocks_.rbegin(), blocks_.rend(), fits);
  if (found == blocks_.rend()) return std::nullopt;
  const memory_block block = found->block;
  blocks_.erase(std::next(found).base());
  if (blocks_.empty()) any_.store(false, std::memory_order_release);
  return block;
}

void freed_blocks::send_down_to(std::uint64_t bytes, session& server, std::uint32_t lane) {
  const std::lock_guard lock(mutex_);
  std::uint64_t kept = 0;
  for (const freed_block& freed : blocks_) kept += freed.block.size;
  auto at = blocks_.begin();
  for (; at != blocks_.end() && (bytes == 0 || kept > bytes); ++at) {
    kept -= at->block.size;
    outgoing free = cuda::written<api::opcode::cuMemFreeAsync>(
        bytes_, lane, at->running_context, {.address = at->block.base, .stream = at->stream});
    free.how = pace::followed;
    (void)server.post(free);  // after a loss nobody needs it any more
  }
  blocks_.erase(blocks_.begin(), at);
  if (blocks_.empty()) any_.store(false, std::memory_order_release);
}

}  // namespace outboard::frontend
