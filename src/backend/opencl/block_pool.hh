// Blocks of locked memory that bytes of the connection pass through: the device copies from and to them by
// itself, where the driver would copy once more. Kept for the next transfer. Own lock; any thread.
#pragma once

#include <map>
#include <mutex>
#include <set>

#include "backend/opencl/transfer_areas.hh"

namespace outboard::backend::opencl {

class block_pool {
 public:
  explicit block_pool(const api::opencl::function_table& table) : table_(table) {}

  /// Room for so many bytes, with anything in it: a block of the context's, once it has asked for some and if
  /// one is free, else ordinary memory.
  host_bytes take(cl_context context, std::size_t size);
  /// Only such a block; nothing: none is free.
  host_bytes take_locked(cl_context context, std::size_t size);
  /// Blocks of the largest size for a context that moves much: more than others get, and at once. Contexts
  /// beyond some get none.
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
