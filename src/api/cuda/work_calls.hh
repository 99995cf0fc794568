// Which functions of the driver leave work to the device that profilers show: those whose line says `work`;
// and which of them may be over when they return. Any thread.
#pragma once

#include <string_view>

namespace outboard::api {

/// `name`: of a function of the driver's, in any of its versions.
bool leaves_work(std::string_view name);

/// Fills, and copies between addresses of devices, that are over when they return if they write memory of the
/// host (measured: 580).
constexpr bool over_if_of_host(std::string_view name) {
  if (name.find("Async") != name.npos) return false;
  return name.starts_with("cuMemset") || name.starts_with("cuMemcpyDtoD") || name.starts_with("cuMemcpyPeer");
}

}  // namespace outboard::api
