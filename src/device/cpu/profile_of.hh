// The profile of a device with these options, for use before it is opened and in processes that have none. A
// pure function of the options and the machine; any thread.
#pragma once

#include "device/cpu/cpu.hh"
#include "device/cpu/profile.hh"

namespace outboard::device::cpu {

profile profile_of(const options& how);

}  // namespace outboard::device::cpu
