// Names and numbers of what CUPTI calls back about, and of its results: from its public headers. Any thread.
#pragma once

#include <cstdint>
#include <string_view>

namespace outboard::api::cupti {

/// One of CUPTI's lists of functions: the driver's, the runtime's and NVTX's.
enum class domain { driver, runtime, nvtx };

/// The function's number, 0: CUPTI knows none of this name.
std::uint32_t callback_of(domain which, std::string_view name);
/// NUL-terminated, or nullptr.
const char* callback_name(domain which, std::uint32_t number);
/// All numbers are below this.
std::uint32_t callback_count(domain which);

/// As the header has it ("CUPTI_ERROR_INVALID_KIND"), or nullptr.
const char* result_name(int code);
/// Of a kind of activity, for messages: also of some that are newer than the headers.
const char* kind_name(int kind);

}  // namespace outboard::api::cupti
