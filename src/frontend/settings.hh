// What the configuration says to the front-end: which servers, which token, how to behave. Read once, at
// connect.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "base/result.hh"
#include "frontend/dial.hh"
#include "transport/transport.hh"

namespace outboard::frontend {

struct settings {
  std::vector<std::string> servers;  ///< tried in order
  std::vector<std::byte> token;
  bool synchronous = false;
  std::string trace_file;
  std::vector<std::pair<std::string, std::string>> plugins;  ///< transport name, library
};

result<settings> client_settings();

/// Loads the transports that the configuration names as shared objects.
status add_plugins(const settings& s, transport::registry& transports);

/// The first server that welcomes us; else one error that names each with its reason.
result<dialed> dial_any(const settings& s, const transport::registry& transports, const wire::hello& hello,
                        transport::deadline until);

}  // namespace outboard::frontend
