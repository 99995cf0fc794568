#include "backend/cuda/memory/page_locks.hh"

#include <sys/mman.h>

#include "backend/cuda/driver_call.hh"

namespace outboard::backend {

namespace {

constexpr int fresh = MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED;

}  // namespace

void reserve_again(void* memory, std::size_t size) { (void)::mmap(memory, size, PROT_NONE, fresh, -1, 0); }

bool give_back_page_locked(const api::driver_table& driver, void* memory, std::size_t size,
                           range_after after) {
  const CUresult code = call_driver(driver.cuMemHostUnregister, memory);
  const bool forgotten = code == CUDA_SUCCESS || code == CUDA_ERROR_HOST_MEMORY_NOT_REGISTERED;
  // Where a process has too many mappings the old pages stay.
  if (!forgotten) {
    (void)::mmap(memory, size, PROT_READ | PROT_WRITE, fresh, -1, 0);
  } else if (after == range_after::reserved) {
    reserve_again(memory, size);
  } else {
    ::munmap(memory, size);
  }
  return forgotten;
}

}  // namespace outboard::backend
