// Where things are on this machine: our own binary, the client library, the default sockets. Any thread.
#pragma once

#include <string>
#include <vector>

#include "base/result.hh"

namespace outboard::tool {

/// The resolved path of this executable.
std::string own_path();

/// ../lib/outboard, seen from the folder of this executable, both in a build folder and as installed.
std::string library_folder();

/// The folder that holds libcuda.so.1: `chosen` (--library) unless that is empty, else library_folder().
result<std::string> find_library_folder(const std::string& chosen);

/// Where `serve` listens if no URL is given: in the folder that systemd made for the service, in
/// /run/outboard for root, else in the user's run-time folder.
std::string default_socket();

/// Where a client looks for a server of this machine: the user's own default socket, then the system's.
std::vector<std::string> usual_sockets();

/// Those of usual_sockets() whose socket file exists.
std::vector<std::string> sockets_there();

/// Makes the folder of the default socket (0755 below /run, 0700 elsewhere) if `url` is that socket and its
/// folder is missing.
status prepare_default_socket(const std::string& url);

}  // namespace outboard::tool
