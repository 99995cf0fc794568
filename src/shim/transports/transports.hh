// The transports that every front-end library has, and those that the configuration names. Any thread.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "base/result.hh"
#include "transport/transport.hh"

namespace outboard::shim {

/// `plugins`: name of the transport, its shared object.
status add_transports(transport::registry& transports,
                      const std::vector<std::pair<std::string, std::string>>& plugins);

}  // namespace outboard::shim
