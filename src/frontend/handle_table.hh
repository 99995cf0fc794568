// Handles as the program sees them: ids chosen here, each with what the front-end must know about its object.
// There is one table for each kind. alive() and find() take no lock, because every launch uses them;
// reserve() and release() do. Objects are owned by the table and die at release(): a program that destroys a
// handle while another thread uses it is as wrong as on the real driver.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <vector>

#include "api/cuda/handles.hh"
#include "wire/handle.hh"

namespace outboard::frontend {

/// What the front-end remembers of an object; each kind derives its own.
struct object {
  virtual ~object() = default;
  std::uint64_t context = 0;      ///< handle of the context it belongs to; 0: none
  std::atomic<bool> late{false};  ///< of an earlier life of that context (a primary one, since reset)
};

class handle_table {
 public:
  explicit handle_table(api::handle_kind kind);
  ~handle_table();
  handle_table(const handle_table&) = delete;
  handle_table& operator=(const handle_table&) = delete;

  /// A fresh handle, alive at once. 0 when 2^28 are alive (the program has leaked them).
  std::uint64_t reserve(std::unique_ptr<object> info);

  /// The object behind a value that the program gave, or nullptr if it is no live handle of this kind.
  object* find(std::uint64_t value) const;

  /// False: it was not alive. The object is destroyed.
  bool release(std::uint64_t value);

  /// Every live object, under the table's lock.
  void each(const std::function<void(std::uint64_t, object&)>& visit) const;

 private:
  struct slot {
    std::atomic<std::uint32_t> generation{0};  ///< of the living object; 0: free
    std::uint32_t last_generation = 0;
    std::unique_ptr<object> info;
  };
  static constexpr std::size_t chunk_size = 1024, max_chunks = 1 << 14;
  using chunk = std::array<slot, chunk_size>;

  slot* slot_at(std::uint32_t index) const;

  const api::handle_kind kind_;
  mutable std::mutex mutex_;
  std::vector<std::uint32_t> free_;
  std::uint32_t used_ = 0;
  // Pages that nobody has touched: 128 KiB of zeros for each kind took 2 ms of every program's start.
  const std::unique_ptr<std::atomic<chunk*>[], void (*)(void*)> chunks_;
};

}  // namespace outboard::frontend
