// Admin questions to a server, for devices, sessions, doctor and for `run`'s look before it starts a program.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "base/config.hh"
#include "base/result.hh"
#include "frontend/dial.hh"

namespace outboard::tool {

struct server_answer {
  std::string json;
  std::string url, product;
};

/// What a question needs of this machine: the transports and the token.
struct asking_means {
  transport::registry transports;
  std::vector<std::byte> token;
};

/// An error: a plug-in or the token file is wrong.
result<asking_means> prepare_to_ask(const config& c);

/// Asks the servers in order; the first that answers counts. An error names each with its reason and carries
/// the action of the last.
result<server_answer> ask_servers(const asking_means& means, const std::vector<std::string>& servers,
                                  const std::string& question);

}  // namespace outboard::tool
