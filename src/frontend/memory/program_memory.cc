#include "frontend/memory/program_memory.hh"

#include <cstdio>

#include "base/log.hh"
#include "frontend/lane.hh"
#include "frontend/memory/live_memory.hh"
#include "frontend/memory/managed_blocks.hh"
#include "frontend/session.hh"
#include "frontend/settings.hh"

namespace outboard::frontend {
namespace {

/// Devices a session may have; bounds the claimed range until the snapshot says how many there are.
constexpr std::uint64_t slots_claimed = 8;
/// Addresses for page-locked memory where there is no room for a window.
constexpr std::uint64_t arena_alone = 1ull << 34;
/// What small page-locked blocks share: it is compared as a whole at each launch once kernels see one of
/// them.
constexpr std::uint64_t arena_small_chunk = 64u << 10;
/// Shared with the server instead, when it can pass descriptors: a large page.
constexpr std::uint64_t arena_shared_chunk = 2u << 20;

}  // namespace

program_memory::program_memory()
    : managed_(std::make_unique<managed_blocks>(mirrors_)), live_(std::make_unique<live_memory>(mirrors_)) {}

program_memory::~program_memory() = default;

void program_memory::open_arena(std::uint64_t base, std::uint64_t size) {
  arena_.open(base, size, arena_small_chunk);
  mirrors_.watch(base, size);
}

void program_memory::claim_window(wire::hello& hello) {
  for (const std::uint64_t slot : {1ull << 40, 1ull << 38, 1ull << 36}) {
    for (const std::uint64_t base : window_base_candidates()) {
      auto claimed = claimed_range::claim(base, slot * (slots_claimed + 1));  // the last is the arena's
      if (!claimed) continue;
      window_ = std::move(*claimed);
      open_arena(base + slot * slots_claimed, slot);
      hello.window_base = base;
      hello.window_slot_size = slot;
      return;
    }
  }
  log::warn("no free address range for device memory: addresses will be the device's own");
  for (const std::uint64_t base : window_base_candidates()) {
    auto claimed = claimed_range::claim(base, arena_alone);
    if (!claimed) continue;
    arena_range_ = std::move(*claimed);
    return open_arena(base, arena_alone);
  }
}

void program_memory::adopt(const marshal::snapshot& facts) {
  if (!facts.own_addresses) return;
  window_base_ = facts.window_base;
  slot_size_ = facts.window_slot_size;
  for (std::size_t i = 0; i < facts.devices.size(); ++i) {
    // The slot's first granule stays unused, so that no valid address is a slot's base.
    slots_.push_back(std::make_unique<slot_addresses>(window_base_ + i * slot_size_ + window_granule,
                                                      slot_size_ - window_granule));
  }
}

void program_memory::use(const marshal::snapshot& facts, const settings& s) {
  find_addresses_ = s.find_addresses;
  concurrent_managed_ = s.concurrent_managed && !facts.devices.empty() && page_gate::possible();
  for (const marshal::device_facts& device : facts.devices) {
    const auto can = static_cast<std::size_t>(CU_DEVICE_ATTRIBUTE_CONCURRENT_MANAGED_ACCESS);
    concurrent_managed_ =
        concurrent_managed_ && can < device.attributes.size() && device.attributes[can].value != 0;
  }
}

void program_memory::expect_shared_pages() { arena_.set_small_chunk(arena_shared_chunk); }

void program_memory::lend(session& server) {
  if (mirrors_.any()) (void)mirrors_.fetch(server, this_lane(), live_->any());
  managed_->lend();
}

void program_memory::take_back(session& server) {
  managed_->take_back();
  if (mirrors_.any()) (void)mirrors_.send(server, this_lane(), live_->any());
}

void program_memory::stop() {
  managed_->stop();
  live_->stop();
}

slot_addresses* program_memory::window_slot(int device) const {
  return static_cast<std::size_t>(device) < slots_.size() ? slots_[static_cast<std::size_t>(device)].get()
                                                          : nullptr;
}

slot_addresses* program_memory::window_slot_at(std::uint64_t address) const {
  if (address < window_base_ || slots_.empty()) return nullptr;
  const std::uint64_t slot = (address - window_base_) / slot_size_;
  return slot < slots_.size() ? slots_[slot].get() : nullptr;
}

bool program_memory::claim_foreign(std::uint64_t address, std::uint64_t size) {
  if (foreign_.claim(address, size)) return true;
  char text[32];
  std::snprintf(text, sizeof text, "0x%llx", static_cast<unsigned long long>(address));
  log::error("the device put memory at ", text, ", where this process has something of its own");
  return false;
}

bool program_memory::open_foreign(std::uint64_t address, std::uint64_t size) {
  if (foreign_.open(address, size)) return true;
  log::debug("the device put managed memory where this process has something of its own");
  return false;
}

CUresult program_memory::insert_foreign(const memory_block& block) {
  if (!claim_foreign(block.base, block.size)) return CUDA_ERROR_MAP_FAILED;
  addresses_.insert(block);
  return CUDA_SUCCESS;
}

CUresult program_memory::insert_graph_memory(memory_block block) {
  block.kind = memory_kind::graph;
  addresses_.remove_if([&](const memory_block& b) {
    return b.kind == memory_kind::graph && b.base < block.base + block.size && block.base < b.base + b.size;
  });
  return insert_foreign(block);
}

}  // namespace outboard::frontend
