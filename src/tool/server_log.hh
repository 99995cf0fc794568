// Where the lines of the server and its workers go: spdlog on stderr, for a console, as JSON, or with the
// journal's priorities under systemd. Called once by the verb, before its first line.
#pragma once

#include "base/configuration/config.hh"

namespace outboard::tool {

/// `who`: "serve", "worker 123". After `most_lines` (0: no limit) one more says that the rest is left out:
/// what a worker logs is its client's doing, and a client may not fill the disk.
void start_server_log(log::level most, log_format format, const std::string& who, unsigned most_lines = 0);

}  // namespace outboard::tool
