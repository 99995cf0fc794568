// Transports that live in shared objects: loads one and gives it the shape of the contract. The object stays
// loaded for good, since connections may outlive the transport and threads may still be inside it.
#pragma once

#include <memory>
#include <string>

#include "transport/transport.hh"

namespace outboard::transport::plugin {

/// `path` as dlopen takes it, but with a slash in it: a plug-in is named, never searched for. The code of the
/// object runs with all rights of this process, so the path must come from the administrator's or the user's
/// own configuration. Loading one object twice gives two transports.
result<std::unique_ptr<transport>> load(const std::string& path);

}  // namespace outboard::transport::plugin
