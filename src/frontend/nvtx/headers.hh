// NVTX's public headers, with the types that a tool behind them needs.
#pragma once

#define NVTX_AS_SYSTEM_HEADER
#include <nvtx3/nvToolsExt.h>
