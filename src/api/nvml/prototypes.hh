// Our prototypes of NVML's functions, in our namespace. They are for decltype only; none is defined.
// Functions of refused lines are not here. Compile-time only.
#pragma once

#include "api/nvml/types.hh"

namespace outboard::api::nvml::prototypes {

// Only nvmlErrorString has another return type.
const char* nvmlErrorString(int result);
#define PROTOTYPE(symbol, ...) nvmlReturn_t symbol(__VA_ARGS__);
#include "api/nvml/prototypes.def"
#undef PROTOTYPE

}  // namespace outboard::api::nvml::prototypes
