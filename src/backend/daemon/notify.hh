// systemd's protocols for readiness and for sockets passed at start, without its library, because both are a
// few lines and stable. Main thread, at start and end.
#pragma once

#include <string>
#include <vector>

#include "base/fd.hh"

namespace outboard::backend {

/// "READY=1", "STOPPING=1", "STATUS=…": nothing happens outside systemd.
void notify_manager(const std::string& message);

/// The listening sockets that were passed to this very process; their variables are gone afterwards, so that
/// no child takes them for its own.
std::vector<unique_fd> take_passed_sockets();

}  // namespace outboard::backend
