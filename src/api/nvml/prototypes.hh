// The functions of NVML as prototypes of ours, in our namespace: for decltype only, none is defined. Those of
// refused and later lines are not here. Compile-time only.
#pragma once

#include "api/nvml/types.hh"

namespace outboard::api::nvml::prototypes {

// nvmlErrorString alone gives something else.
const char* nvmlErrorString(int result);
#define PROTOTYPE(symbol, ...) nvmlReturn_t symbol(__VA_ARGS__);
#include "api/nvml/prototypes.def"
#undef PROTOTYPE

}  // namespace outboard::api::nvml::prototypes
