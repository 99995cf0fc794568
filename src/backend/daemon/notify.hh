// systemd's protocols for readiness and for sockets passed at start. Both are stable and take a few lines, so
// we do without its library. Main thread, at start and end.
#pragma once

#include <string>
#include <vector>

#include "base/fd.hh"

namespace outboard::backend {

/// "READY=1", "STOPPING=1", "STATUS=…". Does nothing outside systemd.
void notify_manager(const std::string& message);

/// Returns the listening sockets that were passed to this process, and removes the variables that announce
/// them, so that no child takes the sockets for its own.
std::vector<unique_fd> take_passed_sockets();

}  // namespace outboard::backend
