#include "frontend/cuda/injection.hh"

#include <dlfcn.h>

#include <atomic>
#include <cstdlib>

#include "base/log.hh"

namespace outboard::frontend::cuda {

void load_injected_tool() {
  static constinit std::atomic<bool> done{false};
  if (done.exchange(true)) return;
  const char* const path = ::secure_getenv("CUDA_INJECTION64_PATH");
  if (!path || !*path) return;
  void* const library = ::dlopen(path, RTLD_NOW | RTLD_LOCAL);
  if (!library) return log::error("CUDA_INJECTION64_PATH: ", ::dlerror());
  using initialize = int (*)();
  const auto begin = reinterpret_cast<initialize>(::dlsym(library, "InitializeInjection"));
  if (!begin) return log::error("CUDA_INJECTION64_PATH: ", path, " has no function InitializeInjection");
  if (begin() == 0) log::error("CUDA_INJECTION64_PATH: ", path, " could not begin");
}

}  // namespace outboard::frontend::cuda
