// `outboard serve`: several listeners, one loop, one worker process for each session. Never opens a driver
// itself. Made and run by main(), on the main thread, which must be the process's only one while workers
// start.
#pragma once

#include <cstddef>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "backend/daemon/admin.hh"
#include "backend/daemon/event_loop.hh"
#include "backend/daemon/guests.hh"
#include "backend/daemon/workers/workers.hh"
#include "base/configuration/config.hh"
#include "transport/transport.hh"

namespace outboard::backend {

struct daemon_settings {
  config configuration;
  std::vector<std::string> listen;  ///< URLs; may be empty when sockets were passed
  std::vector<std::byte> token;     ///< that all may know; empty: there is none
  std::string tokens_file;          ///< of named tokens; empty: there are none
  worker_command command;
  group_choice groups = {};  ///< taken at the start
  const transport::registry* transports = nullptr;
  variable_source own_environment;
  /// Where to say on which URLs it listens once it does (--ready-fd), or nothing.
  std::function<void(const std::vector<std::string>& urls)> on_ready;
  /// Where to say that no GPU was found and why, or nothing.
  std::function<void(const std::string& why)> on_no_gpu;
  /// Reads the configuration again, by the same rules; nothing: it cannot be.
  std::function<result<config>()> read_again;
  /// As it was read at the start, before anything was filled in.
  config as_read;
};

/// Serves until SIGTERM or SIGINT; a second one ends it at once. An error: why it could not start.
status run_daemon(daemon_settings settings);

}  // namespace outboard::backend
