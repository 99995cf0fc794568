// Sends the log of the server and its workers to stderr, through spdlog: as lines for a console, as JSON, or
// with the journal's priorities under systemd. The verb calls it once, before the first line; main thread.
#pragma once

#include "base/config.hh"

namespace outboard::tool {

/// `who`: "serve", "worker 123". After `most_lines` (0: no limit) one last line says that the rest is left
/// out: a client causes what its worker logs, and must not fill the disk.
void start_server_log(log::level most, log_format format, const std::string& who, unsigned most_lines = 0);

}  // namespace outboard::tool
