// The third purpose of a hello, besides those of hello.hh: a program's NVML. A helper process answers its
// questions, without starting a worker or opening a device. Constants.
#pragma once

#include "wire/hello.hh"

namespace outboard::wire {

inline constexpr purpose purpose_monitor{3};

}  // namespace outboard::wire
