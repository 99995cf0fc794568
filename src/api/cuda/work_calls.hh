// Which functions of the driver leave work to the device that profilers show: kernels, graphs, copies, fills.
// Any thread.
#pragma once

#include <algorithm>
#include <array>
#include <string_view>

namespace outboard::api {

/// `name`: of a function of the driver's, in any of its versions.
constexpr bool leaves_work(std::string_view name) {
  constexpr std::array<std::string_view, 5> beginnings{"cuLaunchKernel", "cuLaunchCooperativeKernel",
                                                       "cuGraphLaunch", "cuMemcpy", "cuMemset"};
  return std::ranges::any_of(beginnings, [&](std::string_view with) { return name.starts_with(with); });
}

}  // namespace outboard::api
