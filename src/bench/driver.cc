#include "bench/driver.hh"

#include <dlfcn.h>

namespace outboard::bench {
namespace {

// What our front-end libraries export, and no driver does.
constexpr const char* frontend_marker = "outboard_frontend_marker";

}  // namespace

result<driver> load_driver(const std::string& library) {
  void* const opened = ::dlopen(library.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (opened == nullptr) return failure(std::string("cannot load the driver library: ") + ::dlerror());
  driver d;
#define OUTBOARD_BENCH_TEXT(name) #name
#define OUTBOARD_BENCH_FIND(function)                                                                   \
  d.function = reinterpret_cast<decltype(&::function)>(::dlsym(opened, OUTBOARD_BENCH_TEXT(function))); \
  if (d.function == nullptr) return failure(library + " has no " OUTBOARD_BENCH_TEXT(function));
  OUTBOARD_BENCH_FUNCTIONS(OUTBOARD_BENCH_FIND)
#undef OUTBOARD_BENCH_FIND
#undef OUTBOARD_BENCH_TEXT
  Dl_info about{};
  const bool known = ::dladdr(reinterpret_cast<void*>(d.cuInit), &about) != 0 && about.dli_fname != nullptr;
  d.library = known ? about.dli_fname : library;
  d.ours = ::dlsym(opened, frontend_marker) != nullptr;
  return d;
}

std::string name_of(const driver& d, CUresult code) {
  const char* name = nullptr;
  if (d.cuGetErrorName(code, &name) == CUDA_SUCCESS && name != nullptr) return name;
  return "error " + std::to_string(static_cast<int>(code));
}

}  // namespace outboard::bench
