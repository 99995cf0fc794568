// Functions the device provides to kernels. Runs on the worker that runs the block.
#pragma once

#include "ptx/run/warp.hh"

namespace outboard::ptx {

/// Calls a provided function for the active lanes; the step's result.
const inst* builtin_call(warp* w, const inst* i, const call_site& site);

}  // namespace outboard::ptx
