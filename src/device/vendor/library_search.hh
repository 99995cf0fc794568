// Where the dynamic loader would find a library, and a few folders more, without loading it. Any thread.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace outboard::device::vendor {

/// Existing files of this SONAME in LD_LIBRARY_PATH, the loader's cache and `folders`, in this order,
/// resolved and without repetition.
std::vector<std::string> find_library(std::string_view soname, std::span<const char* const> folders);

}  // namespace outboard::device::vendor
