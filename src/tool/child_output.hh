// A program that is run for what it prints. Main thread.
#pragma once

#include <string>
#include <vector>

#include "base/result.hh"

namespace outboard::tool {

struct child_output {
  int status = 0;  ///< its own, or 128 and the number of the signal that ended it
  std::string text;
};

/// Runs `command` (a path, then arguments) to its end: what it writes to the standard output comes back, its
/// errors go to ours. It ends with us. An error: it could not be started.
result<child_output> run_for_output(std::vector<std::string> command);

}  // namespace outboard::tool
