// One layer of the configuration: applies a TOML text over the existing values. Part of config, which alone
// uses it.
#pragma once

#include <string>
#include <string_view>

#include "base/config.hh"

namespace outboard {

/// Errors begin with "PATH:LINE: ". Relative paths in the text are relative to the file's folder.
status apply_config_text(config& c, std::string_view text, const std::string& path);

}  // namespace outboard
