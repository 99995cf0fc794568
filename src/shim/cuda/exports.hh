// The exported symbols by name, for cuGetProcAddress. Any thread.
#pragma once

#include <string_view>

namespace outboard::shim {

/// The address of an exported driver function, or nullptr.
void* find_export(std::string_view symbol);

}  // namespace outboard::shim
