// Which functions of the driver leave work to the device that profilers show: those whose line says `work`.
// Any thread.
#pragma once

#include <string_view>

namespace outboard::api {

/// `name`: of a function of the driver's, in any of its versions.
bool leaves_work(std::string_view name);

}  // namespace outboard::api
