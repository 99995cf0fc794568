// The options that a front-end library (src/shim) passes to the front-end once, at boot. A value.
#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/result.hh"
#include "transport/transport.hh"

namespace outboard::frontend {

/// What the shim knows and the front-end does not: the transports linked in and the exported symbols.
struct boot_options {
  /// Adds the transports linked in, and the shared objects that the configuration names.
  status (*add_transports)(transport::registry& to,
                           const std::vector<std::pair<std::string, std::string>>& plugins) = nullptr;
  void* (*find_export)(std::string_view symbol) = nullptr;  ///< nullptr: not exported
  void (*forked)() = nullptr;  ///< called in a forked child: forgets everything, frees nothing
};

}  // namespace outboard::frontend
