// Fills a registry with the transports of base/schemes.def and with those that the configuration names. Any
// thread.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "base/result.hh"
#include "transport/make_options.hh"
#include "transport/transport.hh"

namespace outboard::transport {

/// Name of the transport, and its shared object.
using plugin_list = std::vector<std::pair<std::string, std::string>>;

status add_all(registry& to, const plugin_list& plugins);
status add_all(registry& to, const plugin_list& plugins, const make_options& options);

}  // namespace outboard::transport
