#include "device/cpu/texture.hh"

namespace outboard::device::cpu {

texture_table::~texture_table() {
  for (auto& c : chunks_) delete c.load(std::memory_order_relaxed);
}

texture_table::slot* texture_table::at(std::uint64_t handle) const {
  const std::uint32_t index = static_cast<std::uint32_t>(handle) - 1;
  if (index >= chunk_size * max_chunks) return nullptr;
  // acquire pairs with the release in insert(): the chunk is seen constructed.
  chunk* c = chunks_[index / chunk_size].load(std::memory_order_acquire);
  slot* s = c ? &(*c)[index % chunk_size] : nullptr;
  return s && s->handle.load(std::memory_order_acquire) == handle ? s : nullptr;
}

const texture_object* texture_table::find(std::uint64_t handle) const {
  const slot* s = at(handle);
  return s ? s->object.get() : nullptr;
}

const ptx::texture* texture_table::find_texture(std::uint64_t handle) const {
  const texture_object* o = find(handle);
  return o && !o->surface ? &o->texture : nullptr;
}

const ptx::image* texture_table::find_surface(std::uint64_t handle) const {
  const texture_object* o = find(handle);
  return o && o->surface ? &o->texture.memory : nullptr;
}

std::uint64_t texture_table::insert(std::unique_ptr<const texture_object> made) {
  std::lock_guard lock(mutex_);
  std::uint32_t index = used_;
  if (!free_.empty()) {
    index = free_.back();
    free_.pop_back();
  } else {
    if (used_ == chunk_size * max_chunks) return 0;
    if (index % chunk_size == 0) chunks_[index / chunk_size].store(new chunk, std::memory_order_release);
    ++used_;
  }
  slot& s = (*chunks_[index / chunk_size].load(std::memory_order_relaxed))[index % chunk_size];
  s.object = std::move(made);
  s.generation = (s.generation + 1) & 0xffffff;
  const std::uint64_t handle = std::uint64_t{s.generation} << 32 | (index + 1);
  s.handle.store(handle, std::memory_order_release);  // pairs with at()
  return handle;
}

std::unique_ptr<const texture_object> texture_table::remove(std::uint64_t handle) {
  std::lock_guard lock(mutex_);
  slot* s = at(handle);
  if (!s) return nullptr;
  s->handle.store(0, std::memory_order_release);
  free_.push_back(static_cast<std::uint32_t>(handle) - 1);
  return std::move(s->object);
}

void texture_table::remove_owned(const context_ptr& owner) {
  std::vector<std::uint64_t> theirs;
  {
    std::lock_guard lock(mutex_);
    for (std::uint32_t i = 0; i < used_; ++i) {
      const slot& s = (*chunks_[i / chunk_size].load(std::memory_order_relaxed))[i % chunk_size];
      if (s.object && s.object->owner == owner) theirs.push_back(s.handle.load(std::memory_order_relaxed));
    }
  }
  for (const std::uint64_t handle : theirs) remove(handle);
}

}  // namespace outboard::device::cpu
