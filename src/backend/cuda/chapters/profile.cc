// What the device did, told to a program that is profiled.
#include "backend/cuda/ends.hh"
#include "backend/cuda/session.hh"
#include "backend/session/profile_requests.hh"

namespace outboard::backend::ends {

outcome profile_start(call& c) {
  c.session.keep_here("it is profiled, or was");
  return start_profile(c.without_work(), c.session.recorder());
}
outcome profile_stop(call& c) { return stop_profile(c.without_work(), c.session.recorder()); }
outcome profile_samples(call& c) {
  c.session.keep_here("it is profiled, or was");
  int devices = 0;
  if (c.session.driver().cuDeviceGetCount(&devices) != CUDA_SUCCESS) devices = 0;
  return sample_boards(c.without_work(), c.session.recorder(), static_cast<std::uint32_t>(devices));
}
outcome profile_take(call& c) { return take_profile(c.without_work(), c.session.recorder()); }

}  // namespace outboard::backend::ends
