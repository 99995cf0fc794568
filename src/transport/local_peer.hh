// Whether a client may trust the process behind a Unix socket. Free functions, any thread.
#pragma once

#include <sys/types.h>

#include <string>

#include "base/result.hh"

namespace outboard::transport {

/// `peer` listens at `path`, `own` is who asks. Root and `own` are trusted; another user only if nobody else
/// could have put a socket there: it owns the socket, and every folder on the way belongs to root, to `own`
/// or to that user, and is closed to everybody else. Such a folder is /run/outboard of a service with a user
/// of its own. In /tmp anybody may be first, so there only what root or `own` has made counts (a container's
/// runtime mounts folders there). The message says what to do.
status may_serve(const std::string& path, uid_t peer, uid_t own);

/// Asks the kernel who listens at the other end of this connected socket.
status check_server(int socket, const std::string& path);

}  // namespace outboard::transport
