#include "cuda.hh"

#include <dlfcn.h>

#include <cstdio>
#include <cstdlib>

namespace conformance {

driver::driver() {
  void* library = dlopen("libcuda.so.1", RTLD_NOW);
  if (!library) {
    std::fprintf(stderr, "no driver: %s\n", dlerror());
    std::exit(77);
  }
#define X(name)                                                                          \
  name = reinterpret_cast<decltype(this->name)>(dlsym(library, CONFORMANCE_TEXT(name))); \
  if (!name) std::fprintf(stderr, "the driver has no %s\n", CONFORMANCE_TEXT(name)), std::exit(1);
  CONFORMANCE_CUDA(X)
#undef X
}

std::string driver::error_name(CUresult code) const {
  const char* text = nullptr;
  if (cuGetErrorName(code, &text) != CUDA_SUCCESS || !text) return "error " + std::to_string(code);
  return text;
}

const driver& cuda() {
  static const driver all;
  return all;
}

}  // namespace conformance
