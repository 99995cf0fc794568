// The names of the services of one API's sessions that report the device's work. Compile-time only.
#pragma once

#include <cstdint>

#include "marshal/cuda/bodies.hh"

namespace outboard::frontend {

struct profile_services {
  std::uint32_t start = 0, stop = 0, take = 0;

  /// Service: the API's enumeration of services.
  template <class Service>
  static constexpr profile_services of() {
    return {static_cast<std::uint32_t>(Service::profile_start),
            static_cast<std::uint32_t>(Service::profile_stop),
            static_cast<std::uint32_t>(Service::profile_take)};
  }
};

inline constexpr profile_services cuda_profiles = profile_services::of<marshal::service>();

}  // namespace outboard::frontend
