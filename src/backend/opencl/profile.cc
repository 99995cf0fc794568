// What the device did, told to a program that is profiled: by the events of its commands.
#include "backend/opencl/ends.hh"
#include "backend/session/profile_requests.hh"

namespace outboard::backend::opencl::ends {

outcome profile_start(call& c) { return start_profile(c, &own(c).records()); }
outcome profile_stop(call& c) { return stop_profile(c, &own(c).records()); }
outcome profile_take(call& c) { return take_profile(c, &own(c).records()); }

}  // namespace outboard::backend::opencl::ends
