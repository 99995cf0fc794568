// One layer of the configuration: a TOML text laid over what is there. Part of config; used by it alone.
#pragma once

#include <string>
#include <string_view>

#include "base/configuration/config.hh"

namespace outboard {

/// Errors begin with "PATH:LINE: ". Relative paths in the text are relative to the file's folder.
status apply_config_text(config& c, std::string_view text, const std::string& path);

}  // namespace outboard
