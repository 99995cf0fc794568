// What happens when an object ends: for objects.hh's on_death(). Any thread.
#pragma once

#include "frontend/opencl/objects.hh"

namespace outboard::frontend::opencl {

void tell_death(cell& dying);

}  // namespace outboard::frontend::opencl
