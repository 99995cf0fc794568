#include "frontend/cuda/tables/cls.hh"

#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <new>
#include <vector>

namespace outboard::frontend::cuda {
namespace {

// A hash table of atomics under a sequence lock. Readers probe without a lock and repeat when a writer was
// there; tables are replaced when full, never freed (a reader may still be in one; sizes double, so all old
// ones together are smaller than the newest).
struct slot {
  std::atomic<CUcontext> context{};
  std::atomic<void*> key{};  // null: never used; the probe ends here
  std::atomic<void*> value{};
  cls_destructor destructor = nullptr;  // writers only
};

struct table {
  table(std::size_t n, table* before) : mask(n - 1), slots(new slot[n]), older(before) {}
  const std::size_t mask;  // size is a power of two
  std::size_t used = 0;    // slots whose key is set, live or dead; writers only
  slot* const slots;
  table* const older;  // kept in sight of leak checkers
};

// A removed entry keeps its place so that probes go on behind it. No context has this address.
inline CUcontext dead() { return reinterpret_cast<CUcontext>(std::uintptr_t{1}); }

constinit std::mutex writing;
constinit std::atomic<table*> current{nullptr};
constinit std::atomic<std::uint64_t> sequence{0};  // odd while a writer changes slots

std::size_t place_of(CUcontext context, void* key) {
  auto x = reinterpret_cast<std::uintptr_t>(context) * 0x9e3779b97f4a7c15ull;
  x ^= reinterpret_cast<std::uintptr_t>(key);
  x *= 0x9e3779b97f4a7c15ull;
  return static_cast<std::size_t>(x >> 32);
}

slot* find(table* in, CUcontext context, void* key) {
  if (!in) return nullptr;
  for (std::size_t n = 0, at = place_of(context, key); n <= in->mask; ++n, ++at) {
    slot& here = in->slots[at & in->mask];
    void* const other = here.key.load(std::memory_order_acquire);
    if (!other) return nullptr;
    if (other == key && here.context.load(std::memory_order_acquire) == context) return &here;
  }
  return nullptr;
}

/// Holds `writing` and keeps readers from believing what they see.
class write_section {
 public:
  write_section() : lock_(writing) { sequence.fetch_add(1, std::memory_order_seq_cst); }
  ~write_section() { sequence.fetch_add(1, std::memory_order_seq_cst); }

 private:
  std::lock_guard<std::mutex> lock_;
};

void insert(table& into, CUcontext context, void* key, void* value, cls_destructor destructor) {
  for (std::size_t at = place_of(context, key);; ++at) {
    slot& here = into.slots[at & into.mask];
    if (here.key.load(std::memory_order_relaxed)) continue;
    here.destructor = destructor;
    here.value.store(value, std::memory_order_release);
    here.context.store(context, std::memory_order_release);
    here.key.store(key, std::memory_order_release);
    ++into.used;
    return;
  }
}

/// A table with room for one more entry: the current one, else a fresh one with the live entries. When mostly
/// dead ones filled the table it is cleaned in place (readers repeat), so resets in a loop do not grow it.
table* table_with_room() {
  table* const old = current.load(std::memory_order_relaxed);
  if (old && old->used * 4 < (old->mask + 1) * 3) return old;
  struct entry {
    CUcontext context;
    void *key, *value;
    cls_destructor destructor;
  };
  std::vector<entry> live;
  for (std::size_t n = 0; old && n <= old->mask; ++n) {
    slot& here = old->slots[n];
    void* const key = here.key.load(std::memory_order_relaxed);
    const CUcontext context = here.context.load(std::memory_order_relaxed);
    if (key && context != dead())
      live.push_back({context, key, here.value.load(std::memory_order_relaxed), here.destructor});
  }
  table* next = old;
  if (old && live.size() * 2 <= old->mask) {
    for (std::size_t n = 0; n <= old->mask; ++n) old->slots[n].key.store(nullptr, std::memory_order_release);
    old->used = 0;
  } else {
    next = new table(old ? (old->mask + 1) * 2 : 64, old);
  }
  for (const entry& e : live) insert(*next, e.context, e.key, e.value, e.destructor);
  current.store(next, std::memory_order_release);
  return next;
}

}  // namespace

CUresult cls_put(CUcontext context, void* key, void* value, cls_destructor destructor) try {
  if (!key || !context) return CUDA_ERROR_INVALID_VALUE;
  const write_section section;
  if (slot* const known = find(current.load(std::memory_order_relaxed), context, key)) {
    known->value.store(value, std::memory_order_release);
    known->destructor = destructor;
    return CUDA_SUCCESS;
  }
  insert(*table_with_room(), context, key, value, destructor);
  return CUDA_SUCCESS;
} catch (const std::bad_alloc&) {
  return CUDA_ERROR_OUT_OF_MEMORY;
}

CUresult cls_get(void** value, CUcontext context, void* key) {
  if (!value || !key) return CUDA_ERROR_INVALID_VALUE;
  const auto look = [&](void*& found) {
    slot* const here = find(current.load(std::memory_order_acquire), context, key);
    if (here) found = here->value.load(std::memory_order_acquire);
    return here != nullptr;
  };
  // Acquire loads keep the second look at `sequence` behind the reads of the slots; a change in between shows
  // as another number. Partner: write_section.
  for (int tries = 0; tries < 64; ++tries) {
    const std::uint64_t before = sequence.load(std::memory_order_acquire);
    if (before & 1) continue;
    void* found = nullptr;
    const bool known = look(found);
    if (sequence.load(std::memory_order_acquire) != before) continue;
    if (known) *value = found;
    return known ? CUDA_SUCCESS : CUDA_ERROR_INVALID_HANDLE;
  }
  // A writer was preempted inside its section: wait for it properly.
  void* found = nullptr;
  const std::lock_guard lock(writing);
  if (!look(found)) return CUDA_ERROR_INVALID_HANDLE;
  *value = found;
  return CUDA_SUCCESS;
}

CUresult cls_delete(CUcontext context, void* key) {
  if (!key) return CUDA_ERROR_INVALID_VALUE;
  const write_section section;
  slot* const here = find(current.load(std::memory_order_relaxed), context, key);
  if (!here) return CUDA_ERROR_INVALID_HANDLE;
  here->context.store(dead(), std::memory_order_release);
  return CUDA_SUCCESS;
}

std::size_t cls_context_died(CUcontext context) {
  if (!context || context == dead()) return 0;
  std::size_t count = 0, most = ~std::size_t{0};
  // One at a time: a destructor may delete other entries, and must not be called for them then. What it puts
  // anew must not keep us here for ever.
  while (count < most) {
    void *key = nullptr, *value = nullptr;
    cls_destructor destructor = nullptr;
    {
      const write_section section;
      table* const in = current.load(std::memory_order_relaxed);
      if (count == 0) most = in ? in->used : 0;
      for (std::size_t n = 0; in && n <= in->mask; ++n) {
        slot& here = in->slots[n];
        if (here.context.load(std::memory_order_relaxed) != context) continue;
        if (!(key = here.key.load(std::memory_order_relaxed))) continue;
        value = here.value.load(std::memory_order_relaxed);
        destructor = here.destructor;
        here.context.store(dead(), std::memory_order_release);
        break;
      }
    }
    if (!key) return count;
    ++count;
    if (destructor) destructor(context, key, value);
  }
  return count;
}

void cls_forked() {
  // The thread that may have held the lock does not exist here.
  new (&writing) std::mutex;
  if (table* const in = current.load(std::memory_order_relaxed)) {
    for (std::size_t n = 0; n <= in->mask; ++n) in->slots[n].key.store(nullptr, std::memory_order_relaxed);
    in->used = 0;
  }
  sequence.store(0, std::memory_order_release);
}

}  // namespace outboard::frontend::cuda
