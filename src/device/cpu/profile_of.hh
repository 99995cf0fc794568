// What a device with these options says of itself: before there is one, and in processes that have none. Pure
// function of the options and the machine; any thread.
#pragma once

#include "device/cpu/cpu.hh"
#include "device/cpu/profile.hh"

namespace outboard::device::cpu {

profile profile_of(const options& how);

}  // namespace outboard::device::cpu
