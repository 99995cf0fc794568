// The memory that kernels of one context get from malloc. Made when the first kernel that may call it is
// launched, of the size that CU_LIMIT_MALLOC_HEAP_SIZE then has; lives as long as the context. Any thread.
#pragma once

#include <cstdint>
#include <mutex>
#include <unordered_map>

#include "device/cpu/memory/range_allocator.hh"
#include "ptx/run/executor.hh"

namespace outboard::device::cpu {

class kernel_heap final : public ptx::device_heap {
 public:
  /// Does not own the memory: it belongs to the context and goes with it.
  kernel_heap(std::uint64_t begin, std::uint64_t size) { free_.add(begin, size); }

  std::uint64_t allocate(std::uint64_t bytes) override;
  bool release(std::uint64_t address) override;

 private:
  static constexpr std::uint64_t alignment = 16;
  std::mutex mutex_;
  range_allocator free_;
  std::unordered_map<std::uint64_t, std::uint64_t> taken_;  // address -> bytes
};

}  // namespace outboard::device::cpu
