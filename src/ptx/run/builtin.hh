// Functions that the device provides to kernels. They run on the worker that runs the block.
#pragma once

#include "ptx/run/warp.hh"

namespace outboard::ptx {

/// Calls a provided function for the active lanes; returns the step's result.
const inst* builtin_call(warp* w, const inst* i, const call_site& site);

}  // namespace outboard::ptx
