// Admin questions to a server, for devices, sessions, doctor and for `run`'s look before it starts a program.
#pragma once

#include <cstddef>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "base/configuration/config.hh"
#include "base/result.hh"
#include "frontend/dial.hh"
#include "frontend/encryption.hh"

namespace outboard::tool {

struct server_answer {
  std::string json;
  std::string url, product;
};

/// What a question needs of this machine: the transports, the token, and whom to believe.
struct asking_means {
  transport::registry transports;
  std::vector<std::byte> token;
  std::shared_ptr<frontend::encryption> encrypts;
};

/// Of the servers that this machine may have without being told (locate.hh): those whose sockets are there.
std::vector<std::string> sockets_there();

/// An error: a plug-in or the token file is wrong.
result<asking_means> prepare_to_ask(const config& c);

/// Asks the servers in order; the first that answers counts. An error names each with its reason and carries
/// the action of the last.
result<server_answer> ask_servers(const asking_means& means, const std::vector<std::string>& servers,
                                  const std::string& question);

/// What a server said; no JSON: discarded, in which get() finds nothing.
nlohmann::json parse(const std::string& text);

/// A server of another version may answer with other keys: what is absent is null, never a fault. Lives as
/// long as `j`.
const nlohmann::json& get(const nlohmann::json& j, const char* key);

/// An answer to the question "doctor": why that server begins no session now; empty: it may.
std::string why_no_place(const server_answer& answer);

/// One of the servers may begin a session now. An error names each with its reason and carries the action of
/// the last: retry, where it is full or shuts down.
status find_place(const asking_means& means, const std::vector<std::string>& servers);

}  // namespace outboard::tool
