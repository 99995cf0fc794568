// Blocks of locked memory through which the connection's bytes pass: the device accesses them directly, where
// the driver would otherwise copy once more. They are kept for the next transfer. Own lock; any thread.
#pragma once

#include <map>
#include <mutex>
#include <set>

#include "backend/opencl/transfer_areas.hh"

namespace outboard::backend::opencl {

class block_pool {
 public:
  explicit block_pool(const api::opencl::function_table& table) : table_(table) {}

  /// Returns room for so many bytes, with arbitrary contents: a block of the context's if it has asked for
  /// some before and one is free, else ordinary memory.
  host_bytes take(cl_context context, std::size_t size);
  /// Returns such a block only; nothing if none is free.
  host_bytes take_locked(cl_context context, std::size_t size);
  /// Makes blocks of the largest size for a context that moves much: at once, and more than others get. Only
  /// so many contexts get some.
  void prepare(cl_context context);
  void forget(cl_context context);

 private:
  struct slab;
  static const std::size_t* size_for(cl_context context, std::size_t size);
  struct kept {
    unsigned asked = 0;
    std::shared_ptr<slab> blocks;
  };
  static constexpr std::size_t sizes[] = {64u << 10, 1u << 20};

  const api::opencl::function_table& table_;
  std::mutex mutex_;  // guards what follows
  std::map<cl_context, kept> all_[std::size(sizes)];
  std::set<cl_context> prepared_;
};

}  // namespace outboard::backend::opencl
