// Admin questions to a server, for devices, sessions, doctor and for `run`'s look before it starts a program.
#pragma once

#include <string>

#include "base/config.hh"
#include "base/result.hh"
#include "frontend/dial.hh"

namespace outboard::tool {

struct server_answer {
  std::string json;
  std::string url, product;
};

/// Asks the servers of the configuration in order; the first that answers counts. An error names each with
/// its reason and carries the action of the last.
result<server_answer> ask_servers(const config& c, const std::string& question);

}  // namespace outboard::tool
