// Starts worker processes: exec of our own binary with a control socket and an environment of its own; a
// worker inherits nothing else. Owned by the daemon (and by the command, for a probe); one thread.
#pragma once

#include <sys/types.h>

#include <string>
#include <vector>

#include "base/fd.hh"
#include "base/result.hh"

namespace outboard::backend {

/// The descriptor number of the control socket in a worker.
inline constexpr int worker_control_descriptor = 3;

struct child {
  pid_t process = -1;
  unique_fd control;  ///< our end
};

/// Starts `program` with `arguments` (argv[0] first). Standard input and output are /dev/null, standard error
/// is ours. The child must call die_with_parent() first of all.
result<child> start_child(const std::string& program, const std::vector<std::string>& arguments,
                          const std::vector<std::string>& environment);

/// The kernel kills this process when its parent ends; an error when `parent` has ended already.
status die_with_parent(pid_t parent);

/// "exit status 1", "killed by signal 11 (Segmentation fault)".
std::string describe_exit(int wait_status);

}  // namespace outboard::backend
