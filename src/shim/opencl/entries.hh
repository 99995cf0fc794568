// The functions of our ICD as programs reach them: the dispatch table of the core ones, and those of
// extensions by their names. Static storage; any thread.
#pragma once

#include <string_view>

#include "api/opencl/headers.hh"

namespace outboard::shim::opencl {

const cl_icd_dispatch* dispatch_table();

/// A function of extensions.def; nullptr: no line has this name.
void* extension_function(std::string_view name);

}  // namespace outboard::shim::opencl
