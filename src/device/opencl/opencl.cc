#include "device/opencl/opencl.hh"

#include <dlfcn.h>
#include <stdlib.h>

#include <string>

#include "api/opencl/own_library.hh"

namespace outboard::device::opencl {

result<api::opencl::function_table> open() {
  // Otherwise a back-end could offer the devices of back-ends, even its own, to itself without end.
  ::setenv(api::opencl::worker_variable, "1", 1);
  void* const library = ::dlopen("libOpenCL.so.1", RTLD_NOW | RTLD_LOCAL);
  if (!library) {
    return failure(std::string("no OpenCL on this host: ") + ::dlerror() +
                   "; install an ICD loader (Debian: ocl-icd-libopencl1) and a platform");
  }
  api::opencl::function_table table;
  api::opencl::fill(table, [&](std::string_view name) { return ::dlsym(library, name.data()); });
  if (!table.clGetPlatformIDs || !table.clGetDeviceIDs)
    return failure("libOpenCL.so.1 of this host is not an ICD loader");
  return table;
}

}  // namespace outboard::device::opencl
