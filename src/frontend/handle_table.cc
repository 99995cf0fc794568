#include "frontend/handle_table.hh"

#include <cstdlib>
#include <type_traits>

#include "base/check.hh"

namespace outboard::frontend {

handle_table::handle_table(api::handle_kind kind)
    : kind_(kind),
      chunks_(static_cast<std::atomic<chunk*>*>(std::calloc(max_chunks, sizeof(std::atomic<chunk*>))),
              std::free) {
  static_assert(std::is_trivially_destructible_v<std::atomic<chunk*>>);
  CHECK(chunks_ != nullptr);
}

handle_table::~handle_table() {
  for (std::uint32_t i = 0; i < used_; i += chunk_size)
    delete chunks_[i / chunk_size].load(std::memory_order_relaxed);
}

handle_table::slot* handle_table::slot_at(std::uint32_t index) const {
  if (index / chunk_size >= max_chunks) return nullptr;
  // acquire pairs with the release in reserve(): the chunk is seen constructed.
  chunk* c = chunks_[index / chunk_size].load(std::memory_order_acquire);
  return c ? &(*c)[index % chunk_size] : nullptr;
}

std::uint64_t handle_table::reserve(std::unique_ptr<object> info) {
  const std::lock_guard lock(mutex_);
  std::uint32_t index = 0;
  if (!free_.empty()) {
    index = free_.back();
    free_.pop_back();
  } else {
    if (used_ == chunk_size * max_chunks) return 0;
    index = used_++;
    if (index % chunk_size == 0) chunks_[index / chunk_size].store(new chunk, std::memory_order_release);
  }
  slot& s = *slot_at(index);
  s.last_generation = s.last_generation % wire::handle::max_generation + 1;
  s.info = std::move(info);
  s.generation.store(s.last_generation, std::memory_order_release);  // pairs with find()
  return wire::handle::make(static_cast<std::uint8_t>(kind_), index, s.last_generation).value;
}

object* handle_table::find(std::uint64_t value) const {
  const wire::handle h{value};
  if (!h.well_formed() || h.kind() != static_cast<std::uint8_t>(kind_) || h.minted()) return nullptr;
  const slot* s = slot_at(h.index());
  if (!s || s->generation.load(std::memory_order_acquire) != h.generation()) return nullptr;
  return s->info.get();
}

bool handle_table::release(std::uint64_t value) {
  std::unique_ptr<object> dying;  // destroyed outside the lock, because it may own other objects
  const std::lock_guard lock(mutex_);
  if (!find(value)) return false;
  const std::uint32_t index = wire::handle{value}.index();
  slot& s = *slot_at(index);
  s.generation.store(0, std::memory_order_release);
  dying = std::move(s.info);
  free_.push_back(index);
  return true;
}

void handle_table::each(const std::function<void(std::uint64_t, object&)>& visit) const {
  const std::lock_guard lock(mutex_);
  for (std::uint32_t i = 0; i < used_; ++i) {
    slot& s = *slot_at(i);
    const std::uint32_t generation = s.generation.load(std::memory_order_relaxed);
    if (generation) visit(wire::handle::make(static_cast<std::uint8_t>(kind_), i, generation).value, *s.info);
  }
}

}  // namespace outboard::frontend
