#include "frontend/memory/freed_blocks.hh"

#include <algorithm>

#include "marshal/cuda/bodies.hh"

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
    bytes_.clear();
    wire::writer w(bytes_);
    marshal::put_body(w, marshal::pool_body{0, at->block.base, at->stream, 0, false});
    // After a loss nobody needs it any more.
    (void)server.post({static_cast<std::uint32_t>(api::opcode::cuMemFreeAsync),
                       lane,
                       at->running_context,
                       bytes_,
                       {},
                       pace::followed});
  }
  blocks_.erase(blocks_.begin(), at);
  if (blocks_.empty()) any_.store(false, std::memory_order_release);
}

}  // namespace outboard::frontend
