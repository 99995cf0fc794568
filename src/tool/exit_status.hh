// The exit statuses of the command. They are an interface, listed in docs/command.md. `run` returns the
// program's own status, or 128 plus the number of the signal that ended it. Constants.
#pragma once

#include "base/result.hh"

namespace outboard::tool {

enum exit_status : int {
  exit_good = 0,
  exit_failed = 1,         ///< something failed, or `doctor` found something wrong
  exit_usage = 2,          ///< unknown option, missing argument, a value that an option does not take
  exit_no_server = 3,      ///< no Outboard server answered
  exit_refused = 4,        ///< the server refused: token, version, device
  exit_busy = 5,           ///< the server is full or shuts down: try later
  exit_configuration = 6,  ///< a configuration file, a variable or a token file is wrong
  exit_not_executable = 126,
  exit_not_found = 127,
};

/// The exit status for an error of dial().
inline exit_status status_of(const error& e) {
  if (e.next == action::reconnect) return exit_no_server;
  return e.next == action::retry ? exit_busy : exit_refused;
}

}  // namespace outboard::tool
