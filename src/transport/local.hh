// What unix: and shm: share: sockets that stand in a file, and who may use it. The socket file is 0600; one
// left by a dead server is replaced, one of a living server is not. They differ in the connection they make.
#pragma once

#include <memory>
#include <string>
#include <string_view>

#include "base/fd.hh"
#include "transport/transport.hh"

namespace outboard::transport {

using make_connection = result<std::unique_ptr<connection>> (*)(unique_fd socket, std::string name);

std::unique_ptr<transport> make_local(std::string_view scheme, make_connection make);

}  // namespace outboard::transport
