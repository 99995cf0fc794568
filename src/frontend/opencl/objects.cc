#include "frontend/opencl/objects.hh"

#include <array>
#include <deque>
#include <mutex>
#include <vector>

namespace outboard::frontend::opencl {
namespace {

constexpr std::size_t kinds = static_cast<std::size_t>(handle_kind::count);

constexpr std::size_t chunk_size = 512;
using chunk = std::array<cell, chunk_size>;

struct pool {
  std::mutex mutex;
  std::vector<std::unique_ptr<chunk>> cells;  // never given back
  std::size_t used = 0;
  std::deque<cell*> free;  // the longest free one is taken first
  std::array<std::unique_ptr<handle_table>, kinds> tables;
  const cl_icd_dispatch* dispatch = nullptr;
  find_extension_function find_extension = nullptr;
  death tell = nullptr;

  pool() {
    for (std::size_t k = 0; k < kinds; ++k)
      tables[k] = std::make_unique<handle_table>(static_cast<handle_kind>(k));
  }
};

pool& the_pool() {
  static pool* const p = new pool;  // never destroyed: programs release objects from destructors
  return *p;
}

handle_table& table_of(handle_kind kind) { return *the_pool().tables[static_cast<std::size_t>(kind)]; }

cell* take_cell() {
  pool& p = the_pool();
  const std::lock_guard lock(p.mutex);
  if (p.free.empty()) {
    if (p.used % chunk_size == 0) p.cells.push_back(std::make_unique<chunk>());
    return &(*p.cells.back())[p.used++ % chunk_size];
  }
  cell* const taken = p.free.front();
  p.free.pop_front();
  return taken;
}

cell* fill(handle_kind kind, std::uint64_t id, object* info) {
  cell* const c = take_cell();
  c->dispatch = the_pool().dispatch;
  c->references.store(1, std::memory_order_relaxed);
  c->holds.store(1, std::memory_order_relaxed);
  c->id = id;
  c->home = home_of_call();
  c->info = info;
  c->kind.store(kind, std::memory_order_release);  // pairs with alive()
  return c;
}

}  // namespace

cell* make(handle_kind kind, std::unique_ptr<object> info) {
  object* const raw = info.get();
  const std::uint64_t id = table_of(kind).reserve(std::move(info));
  return id ? fill(kind, id, raw) : nullptr;
}

cell* make_named(handle_kind kind, std::uint64_t id, std::unique_ptr<object> info) {
  return fill(kind, id, info.release());  // it lives as long as the process
}

void set_dispatch(const cl_icd_dispatch* dispatch, find_extension_function find) {
  the_pool().dispatch = dispatch;
  the_pool().find_extension = find;
}
void* extension_function(std::string_view name) {
  return the_pool().find_extension ? the_pool().find_extension(name) : nullptr;
}
void on_death(death tell) { the_pool().tell = tell; }

void hold(cell& c) { c.holds.fetch_add(1, std::memory_order_relaxed); }

void let_go(cell& c) {
  if (c.holds.fetch_sub(1, std::memory_order_acq_rel) != 1) return;
  if (const death tell = the_pool().tell) tell(c);
  discard(c);
}

void discard(cell& c) {
  pool& p = the_pool();
  const handle_kind kind = c.kind.exchange(handle_kind::none, std::memory_order_acq_rel);
  table_of(kind).release(c.id);  // what it needs is let go with it
  c.info = nullptr;
  const std::lock_guard lock(p.mutex);
  p.free.push_back(&c);
}

bool is_cell(const cell* c) {
  pool& p = the_pool();
  const std::lock_guard lock(p.mutex);
  for (const auto& some : p.cells) {
    const auto offset = reinterpret_cast<std::uintptr_t>(c) - reinterpret_cast<std::uintptr_t>(some->data());
    if (offset < sizeof(chunk))
      return offset % sizeof(cell) == 0 && c->kind.load(std::memory_order_acquire) != handle_kind::none;
  }
  return false;
}

bool alive(const cell* c, handle_kind kind) { return c && c->kind.load(std::memory_order_acquire) == kind; }

}  // namespace outboard::frontend::opencl
