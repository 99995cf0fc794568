#include "backend/opencl/block_pool.hh"

#include <algorithm>

namespace outboard::backend::opencl {
namespace {

constexpr std::size_t blocks_of_slab = 16;
/// For data connections: as many as a client has under way, and as the device still reads.
constexpr std::size_t blocks_prepared = 32;
constexpr std::size_t most_prepared = 16;
/// Locking the pages of a slab takes as long as several copies through ordinary memory.
constexpr unsigned worth_locking = 16;

host_bytes ordinary(std::size_t size) {
  const std::shared_ptr<std::byte[]> memory(new std::byte[size]);
  return {memory.get(), size, memory};
}

}  // namespace

struct block_pool::slab : std::enable_shared_from_this<slab> {
  slab(std::shared_ptr<locked_memory> all, std::size_t block, std::size_t count) : memory(std::move(all)) {
    for (std::size_t i = count; i-- > 0;) free.push_back(memory->data() + i * block);
  }

  /// Returns nothing if all are in use.
  host_bytes take(std::size_t size) {
    const std::lock_guard lock(mutex);
    if (free.empty()) return {};
    std::byte* const block = free.back();
    free.pop_back();
    return {block, size, std::shared_ptr<const void>(block, [mine = shared_from_this()](std::byte* back) {
              const std::lock_guard again(mine->mutex);
              mine->free.push_back(back);
            })};
  }

  const std::shared_ptr<locked_memory> memory;
  std::mutex mutex;  // guards free
  std::vector<std::byte*> free;
};

/// nullptr: the context has no blocks of that size.
const std::size_t* block_pool::size_for(cl_context context, std::size_t size) {
  const auto fits = std::find_if(std::begin(sizes), std::end(sizes), [=](auto each) { return size <= each; });
  return context && fits != std::end(sizes) ? fits : nullptr;
}

host_bytes block_pool::take(cl_context context, std::size_t size) {
  const std::size_t* const fits = size_for(context, size);
  if (!fits) return ordinary(size);
  std::shared_ptr<slab> blocks;
  {
    const std::lock_guard lock(mutex_);
    kept& mine = all_[fits - std::begin(sizes)][context];
    if (++mine.asked == worth_locking && !mine.blocks) {
      if (auto memory = locked_memory::make(table_, context, *fits * blocks_of_slab))
        mine.blocks = std::make_shared<slab>(std::move(memory), *fits, blocks_of_slab);
    }
    blocks = mine.blocks;
  }
  host_bytes block = blocks ? blocks->take(size) : host_bytes{};
  return block.data ? block : ordinary(size);
}

host_bytes block_pool::take_locked(cl_context context, std::size_t size) {
  const std::size_t* const fits = size_for(context, size);
  if (!fits) return {};
  std::shared_ptr<slab> blocks;
  {
    const std::lock_guard lock(mutex_);
    const auto& of_size = all_[fits - std::begin(sizes)];
    const auto found = of_size.find(context);
    if (found != of_size.end()) blocks = found->second.blocks;
  }
  return blocks ? blocks->take(size) : host_bytes{};
}

void block_pool::prepare(cl_context context) {
  constexpr std::size_t size = *std::rbegin(sizes);
  const std::lock_guard lock(mutex_);
  if (prepared_.size() >= most_prepared || !prepared_.insert(context).second) return;
  // The former blocks are freed when they are given back.
  if (auto memory = locked_memory::make(table_, context, size * blocks_prepared))
    all_[std::size(sizes) - 1][context].blocks =
        std::make_shared<slab>(std::move(memory), size, blocks_prepared);
}

void block_pool::forget(cl_context context) {
  const std::lock_guard lock(mutex_);
  for (auto& of_size : all_) of_size.erase(context);
  prepared_.erase(context);
}

}  // namespace outboard::backend::opencl
