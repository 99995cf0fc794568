// Transports that live in shared objects: loads one and adapts it to the contract of transport.hh. The object
// is never unloaded, because connections may outlive the transport and threads may still be inside it.
#pragma once

#include <memory>
#include <string>

#include "transport/transport.hh"

namespace outboard::transport::plugin {

/// `path` is passed to dlopen, but must have a slash in it: a plug-in is named, never searched for. The code
/// of the object runs with all rights of this process, so the path must come from the administrator's or the
/// user's own configuration. Loading one object twice gives two transports.
result<std::unique_ptr<transport>> load(const std::string& path);

}  // namespace outboard::transport::plugin
