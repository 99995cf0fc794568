// The front-end's settings: which servers, which token, how to behave. Read once, at connect.
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
#include "frontend/profile/profile.hh"
#include "transport/transport.hh"

namespace outboard::frontend {

struct settings {
  std::vector<std::string> servers;      ///< tried in order
  std::vector<std::byte> token;          ///< empty: none is configured
  std::shared_ptr<encryption> encrypts;  ///< null: as if nothing were configured
  bool synchronous = false;
  bool rings = true;                   ///< where they can be had
  std::uint32_t data_connections = 8;  ///< each way; 0: none
  bool compression = true;             ///< of what those carry
  bool module_cache = true;            ///< ask for images before they are sent, where that is faster
  std::chrono::seconds wait{120};      ///< for the session to begin, once the server is there
  bool find_addresses = true;          ///< false: kernels may see all page-locked memory
  bool concurrent_managed = true;      ///< where it can be had
  std::string trace_file;
  profile_settings profile;
  std::optional<log::level> log;
  std::vector<std::pair<std::string, std::string>> plugins;  ///< transport name, library
};

/// The configuration files and the environment, as the command reads them: a program needs no `outboard run`.
result<settings> client_settings();

/// The first server that welcomes us; else one error that names each with its reason. Sessions ask for rings.
result<dialed> dial_any(const settings& s, const transport::registry& transports, wire::hello hello,
                        transport::deadline until);

}  // namespace outboard::frontend
