#include "frontend/cupti/allocations.hh"

#include "frontend/cuda/objects.hh"
#include "frontend/cuda/requests.hh"
#include "frontend/process.hh"

namespace outboard::frontend::cupti {
namespace {

std::optional<memory_block> block_at(std::uint64_t address) {
  auto block = process::instance().memory().addresses().find(address);
  if (block && block->base != address) block.reset();
  return block;
}

}  // namespace

std::optional<memory_block> allocated_by(const tool_call& call) {
  const auto* const address = *static_cast<const std::uint64_t* const*>(call.parameters);
  return address ? block_at(*address) : std::nullopt;
}

std::optional<memory_block> released_by(const tool_call& call) {
  return block_at(*static_cast<const std::uint64_t*>(call.parameters));
}

known_pool known_pool_at(std::uint64_t handle) {
  const auto* const pool = cuda::find_object<cuda::pool_info>(reinterpret_cast<CUmemoryPool>(handle));
  return pool ? known_pool{pool->device, pool->imported} : known_pool{};
}

}  // namespace outboard::frontend::cupti
