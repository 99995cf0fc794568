#include "frontend/memory/address_table.hh"

#include <mutex>

namespace outboard::frontend {

void address_table::insert(memory_block block) {
  const std::unique_lock lock(mutex_);
  block.id = next_id_++;
  blocks_[block.base] = block;
}

std::optional<memory_block> address_table::remove(std::uint64_t base) {
  const std::unique_lock lock(mutex_);
  const auto found = blocks_.find(base);
  if (found == blocks_.end()) return std::nullopt;
  memory_block block = found->second;
  blocks_.erase(found);
  return block;
}

std::optional<memory_block> address_table::find(std::uint64_t address) const {
  const std::shared_lock lock(mutex_);
  auto after = blocks_.upper_bound(address);
  if (after == blocks_.begin()) return std::nullopt;
  const memory_block& block = std::prev(after)->second;
  if (address - block.base >= block.size) return std::nullopt;
  return block;
}

bool address_table::covers(std::uint64_t address, std::uint64_t size) const {
  const std::shared_lock lock(mutex_);
  if (address + size < address) return false;
  const std::uint64_t end = address + size;
  while (true) {
    auto after = blocks_.upper_bound(address);
    if (after == blocks_.begin()) return false;
    const memory_block& block = std::prev(after)->second;
    if (address - block.base >= block.size) return false;
    // What is written to memory of the host can be read when the call is over.
    if (lies_on_host(block.kind) || block.kind == memory_kind::graph || block.closed) return false;
    if (end <= block.base + block.size) return true;
    address = block.base + block.size;  // a copy may run over adjacent blocks of one device
  }
}

bool address_table::set_sync_memops(std::uint64_t address, bool on) {
  const std::unique_lock lock(mutex_);
  auto after = blocks_.upper_bound(address);
  if (after == blocks_.begin()) return false;
  memory_block& block = std::prev(after)->second;
  if (address - block.base >= block.size) return false;
  return block.sync_memops = on, true;
}

void address_table::set_closed(std::uint64_t base, std::uint64_t size, bool closed) {
  const std::unique_lock lock(mutex_);
  for (auto at = blocks_.lower_bound(base); at != blocks_.end() && at->first - base < size; ++at)
    at->second.closed = closed;
}

std::vector<memory_block> address_table::remove_if(const std::function<bool(const memory_block&)>& which) {
  const std::unique_lock lock(mutex_);
  std::vector<memory_block> removed;
  for (auto at = blocks_.begin(); at != blocks_.end();) {
    if (which(at->second)) {
      removed.push_back(at->second);
      at = blocks_.erase(at);
    } else {
      ++at;
    }
  }
  return removed;
}

}  // namespace outboard::frontend
