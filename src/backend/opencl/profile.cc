// What the device does, told to a program that is profiled: as for CUDA, with records of its own.
#include "backend/cuda/ends.hh"
#include "backend/opencl/ends.hh"

namespace outboard::backend::opencl::ends {

outcome profile_start(call& c) { return backend::ends::profile_start(c); }

outcome profile_stop(call& c) { return backend::ends::profile_stop(c); }

outcome profile_take(call& c) { return backend::ends::profile_take(c); }

}  // namespace outboard::backend::opencl::ends
