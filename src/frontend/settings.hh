// What the configuration tells the front-end: which servers, which token, how to behave. Read once, when
// connecting.
#pragma once

#include <chrono>
#include <cstddef>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/log.hh"
#include "base/result.hh"
#include "frontend/dial.hh"
#include "transport/transport.hh"

namespace outboard::frontend {

struct settings {
  std::vector<std::string> servers;      ///< tried in order
  std::vector<std::byte> token;          ///< empty: none is configured
  std::shared_ptr<encryption> encrypts;  ///< null: as if nothing were configured
  bool synchronous = false;
  bool rings = true;                   ///< use them where possible
  std::uint32_t data_connections = 8;  ///< in each direction; 0: none
  bool compression = true;             ///< compress what the data connections carry
  bool module_cache = true;            ///< ask for images before sending them, where that is faster
  std::chrono::seconds wait{
      120};  ///< how long to wait for the session to begin, once the server has answered
  bool concurrent_managed = true;  ///< use it where possible
  std::string trace_file;
  std::optional<log::level> log;
  std::vector<std::pair<std::string, std::string>> plugins;  ///< transport name, library
};

/// Reads the configuration files and the environment, as the command does: a program does not need `outboard
/// run`.
result<settings> client_settings();

/// Dials the servers in order and returns the first that welcomes us; else one error that names each with its
/// reason. Sessions request rings.
result<dialed> dial_any(const settings& s, const transport::registry& transports, wire::hello hello,
                        transport::deadline until);

}  // namespace outboard::frontend
