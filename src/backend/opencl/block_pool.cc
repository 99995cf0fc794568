#include "backend/opencl/block_pool.hh"

#include <algorithm>

namespace outboard::backend::opencl {
namespace {

constexpr std::size_t blocks_of_slab = 16;
/// To lock the pages of a slab takes as long as some copies through ordinary memory.
constexpr unsigned worth_locking = 16;

host_bytes ordinary(std::size_t size) {
  const std::shared_ptr<std::byte[]> memory(new std::byte[size]);
  return {memory.get(), size, memory};
}

}  // namespace

struct block_pool::slab : std::enable_shared_from_this<slab> {
  slab(std::shared_ptr<locked_memory> all, std::size_t block) : memory(std::move(all)) {
    for (std::size_t i = blocks_of_slab; i-- > 0;) free.push_back(memory->data() + i * block);
  }

  /// Nothing: all are in use.
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

host_bytes block_pool::take(cl_context context, std::size_t size) {
  const auto fits = std::find_if(std::begin(sizes), std::end(sizes), [=](auto each) { return size <= each; });
  if (!context || fits == std::end(sizes)) return ordinary(size);
  std::shared_ptr<slab> blocks;
  {
    const std::lock_guard lock(mutex_);
    kept& mine = all_[fits - std::begin(sizes)][context];
    if (++mine.asked == worth_locking) {
      if (auto memory = locked_memory::make(table_, context, *fits * blocks_of_slab))
        mine.blocks = std::make_shared<slab>(std::move(memory), *fits);
    }
    blocks = mine.blocks;
  }
  host_bytes block = blocks ? blocks->take(size) : host_bytes{};
  return block.data ? block : ordinary(size);
}

void block_pool::forget(cl_context context) {
  const std::lock_guard lock(mutex_);
  for (auto& of_size : all_) of_size.erase(context);
}

}  // namespace outboard::backend::opencl
