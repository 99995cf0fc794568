// Questions to servers: for the verbs devices, sessions and doctor, and for `run`, which asks before it
// starts a program. Main thread.
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
  std::shared_ptr<frontend::encryption> encrypts;
};

/// An error: a plug-in, a URL or the token file is wrong.
result<asking_means> prepare_to_ask(const config& c);

/// Asks the servers in order and takes the first answer. An error names each server with its reason, and has
/// the action of the last.
result<server_answer> ask_servers(const asking_means& means, const std::vector<std::string>& servers,
                                  const std::string& question);

/// Why the server with this answer to "doctor" takes no program; "" if it does.
std::string why_no_place(const std::string& doctor_answer);

/// Finds out whether one of these servers takes a program now; a place in its queue counts. If not, a server
/// that is full or shuts down gives a busy error (retry). What happens between this answer and the program's
/// first call cannot be foreseen.
status find_place(const asking_means& means, const std::vector<std::string>& servers);

}  // namespace outboard::tool
