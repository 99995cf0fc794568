// handle_table<T>: opaque handle values for shared objects. A value carries kind, generation and index, so a
// stale or foreign one is recognised and never dereferenced. Any thread; look-ups take a shared lock and
// O(1).
#pragma once

#include <cstdint>
#include <memory>
#include <mutex>
#include <shared_mutex>
#include <vector>

namespace outboard::device::cpu {

enum class handle_type : std::uint8_t {
  context = 1,
  stream,
  event,
  module,
  function,
  library,
  kernel,
  link,
  physical,
  graph,
  graph_node,
  graph_exec,
  user_object,
  pool,
  array,
  mipmapped_array,
  texture_reference,
};

inline handle_type type_of(std::uint64_t value) { return static_cast<handle_type>(value >> 56); }

template <class T, handle_type Type>
class handle_table {
 public:
  std::uint64_t insert(std::shared_ptr<T> object) {
    std::lock_guard lock(mutex_);
    if (free_.empty()) {
      free_.push_back(static_cast<std::uint32_t>(slots_.size()));
      slots_.emplace_back();
    }
    const std::uint32_t index = free_.back();
    free_.pop_back();
    slots_[index].object = std::move(object);
    return value(index);
  }

  /// nullptr for a value that is not alive in this table.
  std::shared_ptr<T> find(std::uint64_t handle) const {
    std::shared_lock lock(mutex_);
    const std::uint32_t index = index_of(handle);
    return index < slots_.size() && value(index) == handle ? slots_[index].object : nullptr;
  }

  std::shared_ptr<T> remove(std::uint64_t handle) {
    std::lock_guard lock(mutex_);
    const std::uint32_t index = index_of(handle);
    if (index >= slots_.size() || value(index) != handle || slots_[index].object == nullptr) return nullptr;
    slots_[index].generation = (slots_[index].generation + 1) & 0xffffff;
    free_.push_back(index);
    return std::move(slots_[index].object);
  }

  std::vector<std::pair<std::uint64_t, std::shared_ptr<T>>> all() const {
    std::shared_lock lock(mutex_);
    std::vector<std::pair<std::uint64_t, std::shared_ptr<T>>> alive;
    for (std::uint32_t i = 0; i < slots_.size(); ++i) {
      if (slots_[i].object != nullptr) alive.emplace_back(value(i), slots_[i].object);
    }
    return alive;
  }

 private:
  struct slot {
    std::shared_ptr<T> object;
    std::uint32_t generation = 1;
  };

  static std::uint32_t index_of(std::uint64_t handle) { return static_cast<std::uint32_t>(handle); }
  std::uint64_t value(std::uint32_t index) const {
    return std::uint64_t{static_cast<std::uint8_t>(Type)} << 56 |
           std::uint64_t{slots_[index].generation} << 32 | index;
  }

  mutable std::shared_mutex mutex_;
  std::vector<slot> slots_;
  std::vector<std::uint32_t> free_;
};

}  // namespace outboard::device::cpu
