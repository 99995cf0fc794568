// Where things are on this machine: our own binary, the front-end libraries, the default socket. Any thread.
#pragma once

#include <string>
#include <vector>

#include "base/result.hh"

namespace outboard::tool {

/// The resolved path of this executable.
std::string own_path();

/// ../lib/outboard of our own folder: so it is in the build folder and as installed.
std::string library_folder();

/// The folder that holds libcuda.so.1: library_folder(), or `chosen` (--library) when not empty.
result<std::string> find_library_folder(const std::string& chosen);

/// Where `serve` listens when nobody says where: in the folder that systemd made for the service, in
/// /run/outboard for root, else in the user's run-time folder.
std::string default_endpoint();

/// Where a client looks for a server of this machine: the user's own, then the system's.
std::vector<std::string> usual_endpoints();

/// Makes the folder of a unix: endpoint (0755 below /run, 0700 elsewhere) if it is the default one and
/// missing.
status prepare_default_endpoint(const std::string& url);

}  // namespace outboard::tool
