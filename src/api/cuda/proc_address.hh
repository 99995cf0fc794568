// Answers cuGetProcAddress: which symbol a name means at a CUDA version under the stream flags, as a real
// driver decides it by the word `since` of the lines. A static table, sorted at the first question; no
// allocation. Any thread, before cuInit too.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

#include "api/cuda/headers.hh"

namespace outboard::api {

/// cuMemcpyHtoD_v2_ptds is the form _v2 of cuMemcpyHtoD, for programs whose default stream is the thread's.
struct symbol_parts {
  std::string_view name;     ///< by which a program asks
  std::string_view form;     ///< empty, or _v2 and later
  std::string_view variant;  ///< empty, _ptds or _ptsz
};
symbol_parts parts_of(std::string_view symbol);

struct proc_answer {
  std::string_view symbol;  ///< NUL-terminated; empty: the program's pointer becomes NULL
  CUresult result = CUDA_SUCCESS;
  std::optional<CUdriverProcAddressQueryResult> status;  ///< empty: the program's variable is left alone
};

/// cuGetProcAddress_v2 writes the program's pointer exactly when result is CUDA_SUCCESS, and its status if it
/// passed one. The first cuGetProcAddress (11030) differs: CUDA_ERROR_NOT_FOUND and an untouched pointer when
/// there is no symbol. `version` is what the program asks for, `driver_version` what cuDriverGetVersion
/// reports to it. Functions that are REFUSED in the tables are unknown names here.
proc_answer resolve(std::string_view name, int version, std::uint64_t flags, int driver_version);

}  // namespace outboard::api
