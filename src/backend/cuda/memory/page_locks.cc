#include "backend/cuda/memory/page_locks.hh"

#include <sys/mman.h>

#include "backend/cuda/driver_call.hh"

namespace outboard::backend {

void give_back_page_locked(const api::driver_table& driver, void* memory, std::size_t size) {
  const CUresult code = call_driver(driver.cuMemHostUnregister, memory);
  const bool forgotten = code == CUDA_SUCCESS || code == CUDA_ERROR_HOST_MEMORY_NOT_REGISTERED;
  constexpr int fresh = MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED;
  // Where a process has too many mappings the old pages stay.
  if (!forgotten) (void)::mmap(memory, size, PROT_READ | PROT_WRITE, fresh, -1, 0);
  if (forgotten) ::munmap(memory, size);
}

}  // namespace outboard::backend
