// `outboard serve`: listens on several sockets in one loop and starts a worker process for each session. It
// never opens a driver itself. Made and run by main() on the main thread, which must be the process's only
// one while workers start.
#pragma once

#include <cstddef>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "backend/daemon/admin.hh"
#include "backend/daemon/event_loop.hh"
#include "backend/daemon/guests.hh"
#include "backend/daemon/workers.hh"
#include "base/config.hh"
#include "transport/transport.hh"

namespace outboard::backend {

struct daemon_settings {
  config configuration;
  std::vector<std::string> listen;  ///< URLs; may be empty if sockets were passed
  std::vector<std::byte> token;     ///< the shared one; empty: there is none
  std::string tokens_file;          ///< of the named ones; empty: there are none
  worker_command command;
  const transport::registry* transports = nullptr;
  variable_source own_environment;
  /// Reads the configuration again, for SIGHUP and `outboard reload`; may be empty.
  std::function<result<config>()> read_again;
  config as_read;  ///< what was read at the start, before this process adapted it
  /// Called with the URLs once the daemon listens on them (--ready-fd); may be empty.
  std::function<void(const std::vector<std::string>& urls)> on_ready;
  /// Called with the reason if the cpu device was chosen because no GPU can be used; may be empty.
  std::function<void(const std::string& why)> on_no_gpu;
};

/// Serves until SIGTERM or SIGINT; a second one ends it at once. An error says why it could not start.
status run_daemon(daemon_settings settings);

}  // namespace outboard::backend
