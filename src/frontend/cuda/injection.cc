#include "frontend/cuda/injection.hh"

#include <dlfcn.h>

#include <atomic>
#include <cstdlib>
#include <mutex>

#include "base/log.hh"

namespace outboard::frontend::cuda {

namespace {

void load() {
  const char* const path = ::secure_getenv("CUDA_INJECTION64_PATH");
  if (!path || !*path) return;
  void* const library = ::dlopen(path, RTLD_NOW | RTLD_LOCAL);
  if (!library) return log::error("CUDA_INJECTION64_PATH: ", ::dlerror());
  using initialize = int (*)();
  const auto begin = reinterpret_cast<initialize>(::dlsym(library, "InitializeInjection"));
  if (!begin) return log::error("CUDA_INJECTION64_PATH: ", path, " has no function InitializeInjection");
  if (begin() == 0) log::error("CUDA_INJECTION64_PATH: ", path, " could not begin");
}

}  // namespace

void load_injected_tool() {
  static constinit std::atomic<bool> done{false};
  static constinit std::mutex mutex;
  static constinit thread_local bool loading = false;  // the tool itself calls the driver
  if (loading || done.load(std::memory_order_acquire)) return;
  // Another thread's first call waits: the tool would miss what it does next.
  const std::lock_guard lock(mutex);
  if (done.load(std::memory_order_relaxed)) return;
  loading = true;
  load();
  loading = false;
  done.store(true, std::memory_order_release);
}

}  // namespace outboard::frontend::cuda
