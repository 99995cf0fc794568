// Exit statuses of the command: an interface, listed in docs/command.md. `run` gives the program's own
// status, or 128 and the signal's number; what is not the program's doing is 125, 126 or 127, as of env,
// timeout and docker, so that a script can tell a program's 1 to 6 from ours. Constants.
#pragma once

#include "base/result.hh"

namespace outboard::tool {

enum exit_status : int {
  exit_good = 0,
  exit_failed = 1,         ///< something went wrong or, of doctor, something is wrong
  exit_usage = 2,          ///< unknown option, missing argument
  exit_no_server = 3,      ///< no Outboard server answered
  exit_refused = 4,        ///< the server refused: token, version, device
  exit_busy = 5,           ///< the server is full or shuts down: try later
  exit_configuration = 6,  ///< a configuration file, a variable or a token file is wrong
  exit_run_failed = 125,   ///< of run alone, in the place of all above: the program was not started
  exit_not_executable = 126,
  exit_not_found = 127,
};

/// Of what dial() says.
inline exit_status status_of(const error& e) {
  if (e.next == action::reconnect) return exit_no_server;
  return e.next == action::retry ? exit_busy : exit_refused;
}

}  // namespace outboard::tool
