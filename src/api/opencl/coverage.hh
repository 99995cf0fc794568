// docs/coverage-opencl.md, printed from the tables. Pure function.
#pragma once

#include <string>

namespace outboard::api::opencl {

std::string coverage_page();

}  // namespace outboard::api::opencl
