// Where the lines of the server and its workers go: spdlog on stderr, for a console, as JSON, or with the
// journal's priorities under systemd. Called once by the verb, before its first line.
#pragma once

#include "base/config.hh"

namespace outboard::tool {

/// `who`: "serve", "worker 123".
void start_server_log(log::level most, log_format format, const std::string& who);

}  // namespace outboard::tool
