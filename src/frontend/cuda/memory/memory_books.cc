#include "frontend/cuda/memory/memory_books.hh"

#include <cstdio>

#include "base/log.hh"
#include "frontend/cuda/memory/managed_blocks.hh"

namespace outboard::frontend {
namespace {

/// Addresses for page-locked memory where there is no room for a window.
constexpr std::uint64_t arena_alone = 1ull << 34;
/// What small page-locked blocks share: it is compared as a whole at each launch once kernels see one of
/// them.
constexpr std::uint64_t arena_small_chunk = 64u << 10;

}  // namespace

memory_books::memory_books() : managed_(std::make_unique<managed_blocks>(mirrors)) {}
memory_books::~memory_books() = default;

void memory_books::open_arena(std::uint64_t base, std::uint64_t size) {
  arena.open(base, size, arena_small_chunk);
  mirrors.watch(base, size);
}

void memory_books::claim() {
  window.claim();
  if (window.slot_size()) return open_arena(window.arena_base(), window.slot_size());
  for (const std::uint64_t base : window_base_candidates()) {
    auto claimed = claimed_range::claim(base, arena_alone);
    if (!claimed) continue;
    arena_range_ = std::move(*claimed);
    return open_arena(base, arena_alone);
  }
}

bool memory_books::claim_foreign(std::uint64_t address, std::uint64_t size) {
  if (foreign_.claim(address, size)) return true;
  char text[32];
  std::snprintf(text, sizeof text, "0x%llx", static_cast<unsigned long long>(address));
  log::error("the device put memory at ", text, ", where this process has something of its own");
  return false;
}

bool memory_books::open_foreign(std::uint64_t address, std::uint64_t size) {
  if (foreign_.open(address, size)) return true;
  log::debug("the device put managed memory where this process has something of its own");
  return false;
}

CUresult memory_books::insert_foreign(const memory_block& block) {
  if (!claim_foreign(block.base, block.size)) return CUDA_ERROR_MAP_FAILED;
  addresses.insert(block);
  return CUDA_SUCCESS;
}

CUresult memory_books::insert_graph_memory(memory_block block) {
  block.kind = memory_kind::graph;
  addresses.remove_if([&](const memory_block& b) {
    return b.kind == memory_kind::graph && b.base < block.base + block.size && block.base < b.base + b.size;
  });
  return insert_foreign(block);
}

}  // namespace outboard::frontend
