// CUPTI's public headers behind the driver's, which must be read our way first. OUTBOARD_HAS_CUPTI_HEADERS:
// the toolkit has them.
#pragma once

#include "api/cuda/headers.hh"

#if __has_include(<cupti.h>)
// What <cupti.h> includes; it declares some of the driver's old structs anew itself.
#include <cupti_activity.h>
#include <cupti_callbacks.h>
#include <cupti_driver_cbid.h>
#include <cupti_nvtx_cbid.h>
#include <cupti_result.h>
#include <cupti_runtime_cbid.h>
#include <cupti_version.h>
#define OUTBOARD_HAS_CUPTI_HEADERS
#endif
