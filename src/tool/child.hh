// A program that we start: it ends with us, and has one end of a pipe whose other end is ours. Main thread.
#pragma once

#include <sys/types.h>

#include <functional>
#include <string>
#include <vector>

#include "base/fd.hh"
#include "base/result.hh"

namespace outboard::tool {

/// Both ends are closed in what a process executes, unless it makes `theirs` another descriptor.
struct child_pipe {
  unique_fd ours;    ///< to read from
  unique_fd theirs;  ///< to write to; closed here once there is a child
};

result<child_pipe> make_child_pipe();

/// What the child does between its beginning and its program, which it executes from these arguments (the
/// last is a null). What comes back is that it could not: the child's exit status.
using child_becomes = std::function<int(char* const* arguments)>;

/// Starts `command`, a name or path and its arguments. The child gets the signal `dies_by` when we end.
result<pid_t> start_child(std::vector<std::string> command, child_pipe& pipe, int dies_by,
                          const child_becomes& become);

/// The exit status of a child that has ended, as a shell says it: its own, or 128 and the number of the
/// signal that ended it.
int status_of_child(int wait_status);

}  // namespace outboard::tool
