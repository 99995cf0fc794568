// Prints docs/coverage-nvml.md: which functions of NVML exist, by chapter, and why the others do not. Any
// thread.
#pragma once

#include <string>
#include <string_view>

namespace outboard::api::nvml {

/// The whole page, printed from the tables.
std::string coverage_page();

/// Why the functions of this family are refused (the text of a REFUSED line), empty for an unknown family.
std::string_view refusal_reason(std::string_view family);

}  // namespace outboard::api::nvml
