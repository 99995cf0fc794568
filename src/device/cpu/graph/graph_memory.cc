#include "device/cpu/graph/graph_memory.hh"

#include <algorithm>
#include <set>
#include <vector>

#include "device/cpu/graph/graph.hh"
#include "device/cpu/machine.hh"

namespace outboard::device::cpu {
namespace {

struct changes {
  std::vector<graph_block_ptr> allocated;
  std::set<std::uint64_t> freed;
};

void collect(const plan& p, changes& out) {
  for (const plan_step& step : p.steps) {
    if (!step.enabled) continue;
    if (const auto* a = std::get_if<allocation_work>(&step.work)) out.allocated.push_back(a->block);
    if (const auto* r = std::get_if<release_work>(&step.work)) out.freed.insert(r->address);
    for (const plan_ptr& body : step.bodies) collect(*body, out);
  }
}

}  // namespace

graph_block::~graph_block() {
  if (address == 0) return;
  here().store->release(address);
  here().graph_account.used.fetch_sub(size);
}

CUresult graph_memory::allocate(std::uint64_t size, graph_block_ptr& out) {
  auto made = std::make_shared<graph_block>();
  // No context owns it: it lives as long as the graph, or until it is freed.
  const CUresult r =
      here().store->allocate(size, memory::alignment, memory_kind::device, 0, 0, made->address);
  if (r != CUDA_SUCCESS) return r;
  made->size = size;
  here().graph_account.add(size);
  if (known_.size() >= sweep_at_) {
    std::erase_if(known_, [](const auto& entry) { return entry.second.expired(); });
    sweep_at_ = 2 * known_.size() + 64;
  }
  known_[made->address] = made;
  return out = std::move(made), CUDA_SUCCESS;
}

bool graph_memory::knows(std::uint64_t address) const {
  const auto found = known_.find(address);
  return found != known_.end() && !found->second.expired();
}

CUresult graph_memory::claim(const plan& p, const std::shared_ptr<graph_exec>& exec) {
  changes all;
  collect(p, all);
  for (const graph_block_ptr& block : all.allocated) {
    if (!block->exec.expired()) return CUDA_ERROR_NOT_SUPPORTED;
  }
  for (const graph_block_ptr& block : all.allocated) block->exec = exec;
  return CUDA_SUCCESS;
}

CUresult graph_memory::launch(const plan& p, bool frees_itself, std::vector<graph_block_ptr>& freed) {
  changes all;
  collect(p, all);
  if (!frees_itself) {
    for (const graph_block_ptr& block : all.allocated) {
      if (live_.contains(block->address)) return CUDA_ERROR_INVALID_VALUE;
    }
  }
  for (const std::uint64_t address : all.freed) {
    const bool own = std::ranges::any_of(all.allocated, [&](const auto& b) { return b->address == address; });
    if (!own && !live_.contains(address)) return CUDA_ERROR_INVALID_VALUE;
  }
  for (const graph_block_ptr& block : all.allocated) live_[block->address] = block;
  for (const std::uint64_t address : all.freed) freed.push_back(free(address));
  return CUDA_SUCCESS;
}

graph_block_ptr graph_memory::free(std::uint64_t address) {
  const auto found = live_.find(address);
  if (found == live_.end()) return nullptr;
  graph_block_ptr block = std::move(found->second);
  live_.erase(found);
  return block;
}

}  // namespace outboard::device::cpu
