// Uses the driver library as plug-ins and language bindings do: opens it by name, looks up its functions and
// closes it, many times, with threads that have used it and end after it was closed.
#include <cuda.h>
#include <dlfcn.h>

#include <cstring>
#include <thread>

#include "../common.hh"

namespace {

struct library {
  void* handle = dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL);
  library() {
    if (!handle) std::printf("%s\n", dlerror());
    EXPECT(handle != nullptr);
  }
  ~library() { EXPECT(dlclose(handle) == 0); }
  template <class F>
  F* get(const char* name) const {
    void* found = dlsym(handle, name);
    if (!found) std::printf("%s\n", name);
    EXPECT(found != nullptr);
    return reinterpret_cast<F*>(found);
  }
};

#define GET(symbol) l.get<decltype(symbol)>(#symbol)

/// Everything from cuInit to the release; functions with a _v2 name in the header are looked up by that name.
void use(const library& l) {
  MUST(GET(cuInit)(0));
  CUdevice device = 0;
  CUcontext context = nullptr, current = nullptr;
  MUST(GET(cuDeviceGet)(&device, 0));
  MUST(GET(cuDevicePrimaryCtxRetain)(&context, device));
  MUST(GET(cuCtxSetCurrent)(context));
  MUST(GET(cuCtxGetCurrent)(&current));
  EXPECT(current == context);
  CUdeviceptr there = 0;
  std::vector<unsigned> in(5000), out(5000);
  for (unsigned i = 0; i < in.size(); ++i) in[i] = i * 7;
  const std::size_t bytes = in.size() * sizeof(unsigned);
  MUST(l.get<decltype(cuMemAlloc)>("cuMemAlloc_v2")(&there, bytes));
  MUST(l.get<decltype(cuMemcpyHtoD)>("cuMemcpyHtoD_v2")(there, in.data(), bytes));
  MUST(l.get<decltype(cuMemcpyDtoH)>("cuMemcpyDtoH_v2")(out.data(), there, bytes));
  EXPECT(in == out);
  MUST(l.get<decltype(cuMemFree)>("cuMemFree_v2")(there));
  MUST(GET(cuCtxSetCurrent)(nullptr));
  MUST(l.get<decltype(cuDevicePrimaryCtxRelease)>("cuDevicePrimaryCtxRelease_v2")(device));
}

}  // namespace

int main(int count, char** values) {
  if (count > 1) {
    void* handle = dlopen(values[1], RTLD_NOW);
    EXPECT(handle != nullptr);
    const auto init = reinterpret_cast<decltype(cuInit)*>(dlsym(handle, "cuInit"));
    std::printf("%d\n", static_cast<int>(init(0)));
    return 0;
  }
  for (int i = 0; i < 20; ++i) use(library());
  for (int i = 0; i < 3; ++i) {
    const library outer, inner;
    EXPECT(outer.handle == inner.handle);
    use(inner);
  }
  // A thread's last act is to close the library that it has used.
  for (int i = 0; i < 10; ++i) std::thread([] { use(library()); }).join();
  use(library());
  return pass("dlopened");
}
