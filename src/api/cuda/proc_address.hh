// What cuGetProcAddress answers: which symbol a name means at a CUDA version under the stream flags, as a
// real driver decides it. Static tables, no allocation; any thread, before cuInit too.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

#include "api/cuda/headers.hh"

namespace outboard::api {

struct proc_answer {
  std::string_view symbol;  ///< NUL-terminated; empty: the program's pointer becomes NULL
  CUresult result = CUDA_SUCCESS;
  std::optional<CUdriverProcAddressQueryResult> status;  ///< empty: the program's variable is left alone
};

/// cuGetProcAddress_v2 writes the program's pointer exactly when result is CUDA_SUCCESS, and its status if it
/// passed one. The first cuGetProcAddress (11030) differs: CUDA_ERROR_NOT_FOUND and an untouched pointer when
/// there is no symbol. `version` is what the program asks for, `driver_version` what cuDriverGetVersion
/// reports to it. Functions that are LATER or REFUSED in the tables are unknown names here.
proc_answer resolve(std::string_view name, int version, std::uint64_t flags, int driver_version);

}  // namespace outboard::api
